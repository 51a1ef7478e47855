#include "bootstrap/agent_channel.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

#include "base/log.h"
#include "base/posix.h"
#include "base/suspension.h"
#include "base/thread.h"

namespace farandole::bootstrap {
namespace {

constexpr Duration kLongestWaitTurn = std::chrono::seconds(1);
// After its deadline a request is withdrawn; the agent then says what was missing. Only an agent
// that does not run makes anyone wait this long.
constexpr Duration kWithdrawal = std::chrono::milliseconds(250);
constexpr Duration kFarewell = std::chrono::milliseconds(200);

}  // namespace

Result<std::unique_ptr<AgentClient::Channel>> AgentClient::Channel::open(UniqueFd fd,
                                                                         UniqueFd agent,
                                                                         std::string host) {
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) return Status::fromErrno("cannot make an eventfd", errno);
  std::unique_ptr<Channel> channel(
      new Channel(std::move(fd), std::move(agent), std::move(wake), std::move(host)));
  FARANDOLE_ASSIGN_OR_RETURN(channel->thread_,
                             startThread("fd-agent", [raw = channel.get()] { raw->run(); }));
  return channel;
}

AgentClient::Channel::Channel(UniqueFd fd, UniqueFd agent, UniqueFd wake, std::string host)
    : fd_(std::move(fd)),
      agent_(std::move(agent)),
      wake_(std::move(wake)),
      host_(std::move(host)) {}

AgentClient::Channel::~Channel() {
  {
    const MutexLock lock(mutex_);
    stop_ = true;
  }
  wakeUp();
  if (thread_.joinable()) thread_.join();
}

void AgentClient::Channel::closeDescriptors() {
  fd_.reset();
  agent_.reset();
  wake_.reset();
}

void AgentClient::Channel::wakeUp() {
  const std::uint64_t one = 1;
  // Can fail only if the counter is full, and then the reader is awake.
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
}

wire::Answer AgentClient::Channel::request(
    const std::function<std::string(std::uint64_t id)>& encode, const std::string& purpose,
    Deadline deadline) {
  const TimePoint start = Clock::now();
  const MutexLock lock(mutex_);
  if (lost_) return {loss_, {}};
  const std::uint64_t id = ++lastId_;
  const auto entry = requests_.emplace(id, std::nullopt).first;
  sendLocked(encode(id));

  const auto over = [&]() REQUIRES(mutex_) { return entry->second.has_value() || lost_ || stop_; };
  const auto waitUntil = [&](Deadline until) REQUIRES(mutex_) {
    // In slices, so that it is noticed when this process was stopped.
    RunningDeadline limit(until, kLongestWaitTurn);
    while (!over() && !limit.passed()) {
      answered_.wait(mutex_, Deadline::after(limit.get().left(kLongestWaitTurn)));
    }
  };
  waitUntil(deadline);
  const bool late = !over();
  if (late) {
    sendLocked(wire::encodeCancel(id));
    waitUntil(Deadline::after(kWithdrawal));
  }
  std::optional<wire::Answer> answer = std::move(entry->second);
  requests_.erase(entry);
  if (!answer && lost_) return {loss_, {}};
  if (!answer && stop_) return {Status(Code::kShutdown, "bootstrap was shut down"), {}};
  if (!answer || (late && answer->status.code() == Code::kTimeout)) {
    const std::string detail = answer ? answer->status.message() : "the agent does not answer";
    return {Status::timeout("waited " + describeSeconds(Clock::now() - start) + " for " + purpose +
                            ": " + detail),
            {}};
  }
  return std::move(*answer);
}

void AgentClient::Channel::tell(std::string frame) {
  const MutexLock lock(mutex_);
  if (!lost_) sendLocked(std::move(frame));
}

void AgentClient::Channel::sendLocked(std::string frame) {
  out_.push(std::move(frame));
  // A broken connection is found by the reader, which is also who tells everybody.
  if (!out_.flush(fd_.get()) || !out_.empty()) wakeUp();
}

void AgentClient::Channel::onRankEnd(std::function<void(const RankEnd&)> callback) {
  {
    const MutexLock lock(mutex_);
    callback_ = std::move(callback);
  }
  wakeUp();
}

void AgentClient::Channel::onRankStop(std::function<void(const RankStop&)> callback) {
  {
    const MutexLock lock(mutex_);
    stopCallback_ = std::move(callback);
  }
  wakeUp();
}

void AgentClient::Channel::run() {
  while (turn()) deliver();
  flushBeforeLeaving();
}

bool AgentClient::Channel::turn() {
  bool lost = false;
  bool sending = false;
  {
    const MutexLock lock(mutex_);
    if (stop_) return false;
    lost = lost_;
    sending = !out_.empty();
  }
  // Negative descriptors are skipped by poll: without an agent only the owner can wake this thread.
  const short events = static_cast<short>(sending ? POLLIN | POLLOUT : POLLIN);
  std::array<pollfd, 3> entries{{{wake_.get(), POLLIN, 0},
                                 {lost ? -1 : fd_.get(), events, 0},
                                 {lost ? -1 : agent_.get(), POLLIN, 0}}};
  const int ready =
      ::poll(entries.data(), entries.size(), pollMilliseconds(Deadline::never(), kLongestWaitTurn));
  if (ready <= 0) return true;
  if (entries[0].revents != 0) {
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = ::read(wake_.get(), &count, sizeof count);
  }
  if ((entries[1].revents & POLLOUT) != 0) {
    const MutexLock lock(mutex_);
    out_.flush(fd_.get());
  }
  const bool ended = entries[2].revents != 0;
  // Also when the agent has ended: what it said last comes first.
  if (ended || (entries[1].revents & (POLLIN | POLLHUP | POLLERR)) != 0) receive();
  if (ended) agentLost("its process has ended");
  return true;
}

void AgentClient::Channel::receive() {
  std::array<char, 64 << 10> bytes;
  for (;;) {
    const ssize_t got = ::recv(fd_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (got <= 0) return agentLost("it closed the connection");
    decoder_.feed({bytes.data(), static_cast<std::size_t>(got)});
    for (;;) {
      Result<std::optional<wire::Frame>> frame = decoder_.next();
      if (!frame.ok()) return agentLost(frame.status().message());
      if (!frame.value()) break;
      handle(std::move(*frame.value()));
    }
  }
}

void AgentClient::Channel::handle(wire::Frame frame) {
  switch (frame.type) {
    case wire::FrameType::kAnswer:
      if (Result<wire::Answer> answer = wire::decodeAnswer(frame.body); answer.ok()) {
        const MutexLock lock(mutex_);
        // Not found: given up by its caller meanwhile.
        if (const auto found = requests_.find(frame.id); found != requests_.end()) {
          found->second = std::move(answer).value();
          answered_.notifyAll();
        }
        return;
      }
      break;
    case wire::FrameType::kRankEnd:
      if (Result<RankEnd> end = wire::decodeRankEnd(frame.body); end.ok()) {
        logDebug("the agent says: " + describe(end.value()));
        const MutexLock lock(mutex_);
        ends_.push_back(std::move(end).value());
        return;
      }
      break;
    case wire::FrameType::kRankStop:
      if (Result<RankStop> stop = wire::decodeRankStop(frame.body); stop.ok()) {
        logDebug("the agent says: " + describe(stop.value()));
        const MutexLock lock(mutex_);
        stops_.push_back(std::move(stop).value());
        return;
      }
      break;
    case wire::FrameType::kPut:
    case wire::FrameType::kGet:
    case wire::FrameType::kFence:
    case wire::FrameType::kCancel:
    case wire::FrameType::kReport:
    case wire::FrameType::kArrived:
    case wire::FrameType::kGone: break;
  }
  agentLost("it sent something that is not part of the protocol");
}

void AgentClient::Channel::agentLost(std::string why) {
  RankEnd end;
  end.host = host_;
  end.lastLines = std::move(why);
  const std::string account = describe(end);
  {
    const MutexLock lock(mutex_);
    if (lost_) return;
    lost_ = true;
    loss_ = Status::unavailable(account);
    loss_.withRank(-1, host_);
    ends_.push_back(std::move(end));
    answered_.notifyAll();
  }
  logDebug(account);
}

void AgentClient::Channel::deliver() {
  MutexLock lock(mutex_);
  while (callback_ && !ends_.empty() && !stop_) {
    const RankEnd end = std::move(ends_.front());
    ends_.pop_front();
    const auto callback = callback_;
    lock.unlock();
    callback(end);
    lock.lock();
  }
  while (stopCallback_ && !stops_.empty() && !stop_) {
    const RankStop stop = std::move(stops_.front());
    stops_.pop_front();
    const auto callback = stopCallback_;
    lock.unlock();
    callback(stop);
    lock.lock();
  }
}

void AgentClient::Channel::flushBeforeLeaving() {
  const Deadline deadline = Deadline::after(kFarewell);
  MutexLock lock(mutex_);
  while (!lost_ && out_.flush(fd_.get()) && !out_.empty()) {
    lock.unlock();
    if (!waitReady(fd_.get(), POLLOUT, deadline)) return;
    lock.lock();
  }
}

}  // namespace farandole::bootstrap
