#include "bootstrap/agent_loop.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <string_view>
#include <utility>

#include "base/posix.h"
#include "base/thread.h"

namespace farandole::bootstrap {
namespace {

constexpr std::size_t kReadPerTurn = std::size_t{256} << 10;
// Reading everything a rank sent before it ended, or before reports() was called.
constexpr std::size_t kReadAll = std::size_t{16} << 20;
// A rank that does not read its answers is not read from, and in the end dropped.
constexpr std::size_t kUnreadPause = std::size_t{4} << 20;
constexpr std::size_t kUnreadLimit = std::size_t{128} << 20;
constexpr std::size_t kStrangers = 64;
constexpr std::size_t kMaxReport = 1024;
constexpr Duration kLongestLoopTurn = std::chrono::seconds(1);
constexpr Duration kCatchUpLimit = std::chrono::seconds(1);
// How often it is looked whether ranks stand still.
constexpr Duration kLookEvery = std::chrono::milliseconds(500);

std::size_t mostPendingFor(int size) { return kStrangers + static_cast<std::size_t>(size); }

}  // namespace

Result<std::unique_ptr<AgentServer::Loop>> AgentServer::Loop::make(const Options& options) {
  FARANDOLE_ASSIGN_OR_RETURN(auto key, crypto::JobKey::make(options.job, options.secret));
  FARANDOLE_ASSIGN_OR_RETURN(auto doorkeeper,
                             Doorkeeper::open(SOCK_STREAM, std::move(key), crypto::Purpose::kAgent,
                                              mostPendingFor(options.size)));
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) return Status::fromErrno("cannot make an eventfd", errno);
  std::unique_ptr<Loop> loop(new Loop(options, std::move(doorkeeper), std::move(wake)));
  FARANDOLE_ASSIGN_OR_RETURN(loop->thread_,
                             startThread("fd-agent", [raw = loop.get()] { raw->run(); }));
  return loop;
}

AgentServer::Loop::Loop(const Options& options, std::unique_ptr<Doorkeeper> doorkeeper,
                        UniqueFd wake)
    : size_(options.size),
      host_(options.host),
      remote_(static_cast<std::size_t>(options.size)),
      toFirst_(options.toFirst),
      toOther_(options.toOther),
      doorkeeper_(std::move(doorkeeper)),
      wake_(std::move(wake)),
      store_(options.size,
             [this](int rank, std::uint64_t id, const Status& status, std::string_view value) {
               send(rank, wire::encodeAnswer(id, status, value));
             }),
      reports_(static_cast<std::size_t>(options.size)) {
  for (const int rank : options.remoteRanks) remote_.at(static_cast<std::size_t>(rank)) = true;
}

AgentServer::Loop::~Loop() {
  {
    const MutexLock lock(mutex_);
    stop_ = true;
  }
  wakeUp();
  if (thread_.joinable()) thread_.join();
}

void AgentServer::Loop::wakeUp() {
  const std::uint64_t one = 1;
  // Can fail only if the counter is full, and then the loop is awake.
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
}

void AgentServer::Loop::rankEnded(const RankEnd& end) {
  {
    const MutexLock lock(mutex_);
    news_.push_back(end);
  }
  wakeUp();
}

void AgentServer::Loop::relay(int rank, std::string frame) {
  {
    const MutexLock lock(mutex_);
    relayed_.emplace_back(rank, std::move(frame));
  }
  visited_ = true;
  wakeUp();
}

// No rank can have reported anything. The order matters: the thread sets visited_ before it admits
// a visitor.
bool AgentServer::Loop::nobodyCame() const {
  if (visited_) return false;
  pollfd door{doorkeeper_->fd(), POLLIN, 0};
  return ::poll(&door, 1, 0) == 0 && !visited_;
}

std::vector<AgentServer::RankReport> AgentServer::Loop::reports() {
  // Two changes of thread are most of what a job costs whose ranks are no ranks of ours.
  const bool quiet = nobodyCame();
  const MutexLock lock(mutex_);
  if (quiet) return reports_;
  const std::uint64_t mine = ++asked_;
  wakeUp();
  // What a rank reported before it exited lies in its socket: it must not be missed because the
  // loop was slower than the caller's waitpid.
  const Deadline deadline = Deadline::after(kCatchUpLimit);
  while (answered_ < mine && !stop_ && !deadline.passed()) caughtUp_.wait(mutex_, deadline);
  return reports_;
}

void AgentServer::Loop::run() {
  for (;;) {
    {
      const MutexLock lock(mutex_);
      if (stop_) return;
    }
    turn();
  }
}

void AgentServer::Loop::turn() {
  std::vector<pollfd> entries{{wake_.get(), POLLIN, 0}, {doorkeeper_->fd(), POLLIN, 0}};
  std::vector<int> ranks;
  for (const auto& [rank, connection] : connections_) {
    short events = 0;
    if (connection.out.bytes() < kUnreadPause) events |= POLLIN;
    if (!connection.out.empty()) events |= POLLOUT;
    entries.push_back({connection.fd.get(), events, 0});
    ranks.push_back(rank);
  }
  const Duration limit = connections_.empty() ? kLongestLoopTurn : kLookEvery;
  const int ready =
      ::poll(entries.data(), entries.size(), pollMilliseconds(doorkeeper_->nextCall(), limit));
  if (ready < 0) return;

  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if ((entries[i + 2].revents & (POLLIN | POLLHUP | POLLERR)) != 0) {
      receive(ranks[i], connections_.at(ranks[i]), kReadPerTurn);
    }
  }
  if ((entries[0].revents & POLLIN) != 0) {
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = ::read(wake_.get(), &count, sizeof count);
  }
  takeNews();
  if (entries[1].revents != 0 || doorkeeper_->nextCall().passed()) {
    visited_ = true;
    for (Visitor& visitor : doorkeeper_->serve()) welcome(std::move(visitor));
  }
  findStopped();
  flushAll();
}

void AgentServer::Loop::findStopped() {
  const TimePoint now = Clock::now();
  if (size_ < 2 || now < nextLook_ || !looks_) return;
  nextLook_ = now + kLookEvery;
  for (auto& [rank, connection] : connections_) {
    if (connection.broken || connection.pid == 0) continue;
    const Standstill how = standstillOf(connection.pid);
    if (std::exchange(connection.how, how) == how) continue;
    noteStop({rank, host_, connection.pid, how});
  }
}

void AgentServer::Loop::noteStop(const RankStop& stop) {
  const std::string frame = wire::encodeRankStop(stop);
  if (isRelay()) return toFirst_(stop.rank, frame);
  if (stop.how != Standstill::kNone) {
    stops_[stop.rank] = stop;
  } else if (stops_.erase(stop.rank) == 0) {
    return;
  }
  for (int rank = 0; rank < size_; ++rank) {
    if (rank != stop.rank) send(rank, frame);
  }
}

void AgentServer::Loop::tellStops(int rank) {
  for (const auto& entry : stops_) send(rank, wire::encodeRankStop(entry.second));
}

void AgentServer::Loop::takeNews() {
  std::vector<RankEnd> news;
  std::vector<std::pair<int, std::string>> relayed;
  std::uint64_t asked = 0;
  bool behind = false;
  {
    const MutexLock lock(mutex_);
    news.swap(news_);
    relayed.swap(relayed_);
    asked = asked_;
    behind = asked_ != answered_;
  }
  // Before the news: what a rank said was said before it ended.
  for (auto& [rank, frame] : relayed) takeRelayed(rank, std::move(frame));
  if (news.empty() && !behind) return;
  for (auto& [rank, connection] : connections_) receive(rank, connection, kReadAll);
  for (const RankEnd& end : news) {
    // Its children may hold copies of the connection, but none of them is the rank.
    if (const auto found = connections_.find(end.rank); found != connections_.end()) {
      found->second.broken = true;
    }
    store_.rankEnded(end);
    if (!BootstrapStore::abnormal(end)) continue;
    for (const auto& entry : connections_) send(entry.first, wire::encodeRankEnd(end));
  }
  const MutexLock lock(mutex_);
  answered_ = asked;
  caughtUp_.notifyAll();
}

void AgentServer::Loop::takeRelayed(int rank, std::string bytes) {
  if (rank < 0 || rank >= size_) return;
  if (isRelay()) return send(rank, std::move(bytes));
  if (!remote_[static_cast<std::size_t>(rank)]) return;
  wire::FrameDecoder decoder;
  decoder.feed(bytes);
  Result<std::optional<wire::Frame>> frame = decoder.next();
  if (frame.ok() && frame.value()) handle(rank, std::move(*frame.value()));
}

void AgentServer::Loop::welcome(Visitor visitor) {
  const crypto::Claim claim = visitor.claim();
  std::string refusal;
  if (claim.rank < 0 || claim.rank >= size_) {
    refusal = "rank " + std::to_string(claim.rank) + " is not one of this job's " +
              std::to_string(size_) + " ranks";
  } else if (remote_[static_cast<std::size_t>(claim.rank)]) {
    refusal = "rank " + std::to_string(claim.rank) + " runs on another machine";
  } else if (claim.size != size_) {
    refusal = "rank " + std::to_string(claim.rank) + " expects a job of " +
              std::to_string(claim.size) + " ranks, but this job has " + std::to_string(size_);
    noteArrival(claim.rank, claim.size, refusal);
  } else {
    refusal = takenBy(claim.rank, visitor.pid);
  }
  if (!refusal.empty()) {
    // Whether the visitor still hears it is its own affair.
    [[maybe_unused]] const Status told = visitor.refuse(Code::kMismatch, refusal);
    return;
  }
  // A rank that connects again replaces what is left of its old connection. The end of that one may
  // never be seen, because forked children hold copies.
  forget(claim.rank);
  // Before the verdict: once the rank knows that it is inside, reports() must know it too.
  noteArrival(claim.rank, claim.size, {});
  if (!visitor.accept(host_).ok()) return;
  Connection& connection = connections_[claim.rank];
  connection = Connection();
  connection.pid = visitor.pid;
  connection.fd = std::move(visitor.fd);
  for (const RankEnd& end : store_.abnormalEnds()) {
    send(claim.rank, wire::encodeRankEnd(end));
  }
  tellStops(claim.rank);
}

std::string AgentServer::Loop::takenBy(int rank, pid_t visitor) {
  const auto found = connections_.find(rank);
  if (found == connections_.end()) return {};
  const pid_t owner = found->second.pid;
  if (owner == visitor && owner > 0) return {};
  // It may just have closed its end, by exit or exec.
  receive(rank, found->second, kReadAll);
  if (found->second.broken) return {};
  if (owner > 0) {
    // The open connection may be a copy in a child of a process that has ended.
    Result<UniqueFd> process = openPidfd(owner);
    const bool gone = process.ok() ? processEnded(process->get()) : ::kill(owner, 0) != 0;
    if (gone) return {};
  }
  const auto named = [](pid_t pid) { return pid > 0 ? " " + std::to_string(pid) : std::string(); };
  return "process" + named(visitor) + " calls init as rank " + std::to_string(rank) +
         ", but that rank is process" + named(owner) +
         ", which is still running. Children of a rank inherit FARANDOLE_* and must not call init: "
         "in Python put it under if __name__ == \"__main__\": (multiprocessing's spawn and "
         "forkserver run the script's top level again in every child); start other programs "
         "without these variables";
}

void AgentServer::Loop::noteArrival(int rank, int size, const std::string& refusal) {
  if (isRelay()) toFirst_(rank, wire::encodeArrived(size, refusal));
  const MutexLock lock(mutex_);
  RankReport& report = reports_[static_cast<std::size_t>(rank)];
  report.size = size;
  if (refusal.empty()) {
    report.connected = true;
  } else {
    report.what = refusal;
  }
}

void AgentServer::Loop::forget(int rank) {
  store_.forget(rank);
  if (isRelay()) return toFirst_(rank, wire::encodeGone());
  noteStop({rank, {}, 0, Standstill::kNone});
}

void AgentServer::Loop::receive(int rank, Connection& connection, std::size_t limit) {
  std::array<char, 64 << 10> bytes;
  std::size_t total = 0;
  while (!connection.broken && total < limit) {
    const ssize_t got = ::recv(connection.fd.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (got <= 0) {
      connection.broken = true;
      return;
    }
    total += static_cast<std::size_t>(got);
    connection.decoder.feed({bytes.data(), static_cast<std::size_t>(got)});
    for (;;) {
      Result<std::optional<wire::Frame>> frame = connection.decoder.next();
      if (!frame.ok()) connection.broken = true;
      if (!frame.ok() || !frame.value()) break;
      if (!serve(rank, std::move(*frame.value()))) connection.broken = true;
    }
  }
}

bool AgentServer::Loop::serve(int rank, wire::Frame frame) {
  switch (frame.type) {
    case wire::FrameType::kPut:
    case wire::FrameType::kGet:
    case wire::FrameType::kFence:
    case wire::FrameType::kCancel:
    case wire::FrameType::kReport: break;
    default: return false;
  }
  if (isRelay()) toFirst_(rank, wire::encodeFrame(frame));
  // A relay notes reports too, because its owner may ask for them.
  if (isRelay() && frame.type != wire::FrameType::kReport) return true;
  return handle(rank, std::move(frame));
}

bool AgentServer::Loop::handle(int rank, wire::Frame frame) {
  switch (frame.type) {
    case wire::FrameType::kPut:
      if (Result<wire::Put> put = wire::decodePut(frame.body); put.ok()) {
        store_.put(rank, frame.id, std::move(put).value());
        return true;
      }
      return false;
    case wire::FrameType::kGet:
      if (Result<wire::Get> get = wire::decodeGet(frame.body); get.ok()) {
        store_.get(rank, frame.id, std::move(get).value());
        return true;
      }
      return false;
    case wire::FrameType::kFence:
      if (Result<wire::Fence> fence = wire::decodeFence(frame.body); fence.ok()) {
        store_.fence(rank, frame.id, std::move(fence).value());
        return true;
      }
      return false;
    case wire::FrameType::kCancel: store_.cancel(rank, frame.id); return true;
    case wire::FrameType::kReport:
      if (Result<wire::Report> report = wire::decodeReport(frame.body); report.ok()) {
        noteReport(rank, std::move(report).value().text);
        return true;
      }
      return false;
    case wire::FrameType::kArrived:
      if (Result<wire::Arrived> arrived = wire::decodeArrived(frame.body); arrived.ok()) {
        noteArrival(rank, arrived->size, arrived->refusal);
        tellStops(rank);
        return true;
      }
      return false;
    case wire::FrameType::kGone:
      store_.forget(rank);
      noteStop({rank, {}, 0, Standstill::kNone});
      return true;
    case wire::FrameType::kRankStop:
      if (Result<RankStop> stop = wire::decodeRankStop(frame.body); stop.ok()) {
        stop->rank = rank;
        noteStop(*stop);
        return true;
      }
      return false;
    case wire::FrameType::kAnswer:
    case wire::FrameType::kRankEnd: break;
  }
  return false;
}

void AgentServer::Loop::noteReport(int rank, std::string text) {
  text.resize(std::min(text.size(), kMaxReport));
  const MutexLock lock(mutex_);
  RankReport& report = reports_[static_cast<std::size_t>(rank)];
  const std::string_view said(text);
  if (said.starts_with("initialised")) {
    report.initialised = true;
    report.shutDown = false;
    constexpr std::string_view label = "size=";
    if (const std::size_t at = said.find(label); at != std::string_view::npos) {
      int size = -1;
      const std::string_view number = said.substr(at + label.size());
      if (std::from_chars(number.data(), number.data() + number.size(), size).ec == std::errc()) {
        report.size = size;
      }
    }
  } else if (said.starts_with("shut down")) {
    report.shutDown = true;
  }
  report.what = std::move(text);
}

void AgentServer::Loop::send(int rank, std::string frame) {
  if (remote_[static_cast<std::size_t>(rank)]) {
    if (toOther_) toOther_(rank, std::move(frame));
    return;
  }
  const auto found = connections_.find(rank);
  if (found == connections_.end() || found->second.broken) return;
  found->second.out.push(std::move(frame));
  if (found->second.out.bytes() > kUnreadLimit) found->second.broken = true;
}

void AgentServer::Loop::flushAll() {
  for (auto entry = connections_.begin(); entry != connections_.end();) {
    Connection& connection = entry->second;
    if (!connection.broken && !connection.out.flush(connection.fd.get())) connection.broken = true;
    if (!connection.broken) {
      ++entry;
      continue;
    }
    forget(entry->first);
    entry = connections_.erase(entry);
  }
}

}  // namespace farandole::bootstrap
