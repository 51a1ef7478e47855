#include "launch/remote/agent.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <vector>

#include "base/posix.h"
#include "launch/facts/facts.h"
#include "launch/remote/tree.h"
#include "process/cpus.h"
#include "process/listening.h"
#include "process/machine_identity.h"
#include "process/poll_round.h"

namespace farandole::launch::remote {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr auto kLookEvery = milliseconds(250);  // while a script may still open MASTER_PORT
constexpr auto kGoodbye = seconds(5);           // for the last frames to leave

void makeNonBlocking(int fd) { ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK); }

// What the launcher's user has chosen, on top of what sshd gave us. Its PATH comes first; what only
// this machine has stays behind it.
void adoptEnvironment(const launch::plan::JobPlan& plan) {
  for (const auto& [name, value] : plan.environment) {
    std::string text = value;
    if (const char* own = name == "PATH" ? std::getenv("PATH") : nullptr)
      text += std::string(":") + own;
    ::setenv(name.c_str(), text.c_str(), 1);
  }
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

Agent::Agent() : ranks_(*this) {}
Agent::~Agent() = default;

Status Agent::prepare() {
  // Descriptors 0 and 1 become the ranks' nothing; the pipe is ours alone.
  auto signals = process::SignalEvents::open();
  if (!signals.ok()) return signals.status();
  signals_ = std::move(*signals);
  makeNonBlocking(0);
  makeNonBlocking(1);
  splice_.open(1);
  FARANDOLE_RETURN_IF_ERROR(mail_.open());
  Hello hello;
  hello.version = FARANDOLE_VERSION;
  hello.hostName = hostName();
  hello.machine = process::machineIdentity();
  hello.sshConnection = variable("SSH_CONNECTION");
  hello.network = process::networkIdentity();
  hello.addresses = launch::facts::ownAddresses();
  hello.cpus = process::allowedCpus();
  if (Result<int> port = launch::plan::freePort(); port.ok()) hello.freePort = *port;
  send(std::string(kGreeting) + treeId() + "\n");
  send(encodeHello(hello));
  return {};
}

int Agent::run() {
  if (Status prepared = prepare(); !prepared.ok()) {
    std::fprintf(stderr, "farandole agent: %s\n", prepared.message().c_str());
    return 1;
  }
  while (!finish_ && !broken_) step(storeMayOpen_ ? Duration(kLookEvery) : Duration(kBeatEvery));
  leave(finish_);
  return broken_ ? 1 : 0;
}

void Agent::step(Duration limit) {
  flushInput();
  const TimePoint now = Clock::now();
  if (!pace_.rests(now)) flush();
  const bool rests = pace_.rests(now);
  const bool mayWrite = !broken_ && !rests && (!out_.empty() || splice_.busy() || full_);
  const bool mayRead = mayReadOutput() && !rests;
  process::PollRound round;
  round.on(signals_->fd(), POLLIN, [this] { handleSignals(); });
  round.on(mail_.fd(), POLLIN, [this] { passMail(); });
  round.on(broken_ ? -1 : 0, POLLIN, [this] { receive(); });
  round.on(mayWrite ? 1 : -1, POLLOUT, [this] { full_ = false; });
  round.on(mayRead ? ranks_.outputFd() : -1, POLLIN, [this] {
    ranks_.readOutput();
    pace_.endRound(Clock::now());
  });
  // Ready for more input: the next round begins with it.
  round.on(pendingInput_.empty() ? -1 : input_.get(), POLLOUT, [] {});
  round.run(pace_.left(now, limit));
  checkTime();
}

void Agent::flush() {
  if (!broken_ && !splice_.advance()) broken_ = true;
  if (!broken_ && !splice_.busy() && !out_.flush(1)) broken_ = true;
  if (splice_.busy() && splice_.roomy()) pace_.full(Clock::now());
}

void Agent::receive() {
  static std::vector<char> buffer(std::size_t{256} << 10);
  const ssize_t n = ::read(0, buffer.data(), buffer.size());
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) {
    broken_ = true;
    return;
  }
  heard_ = Clock::now();
  decoder_.feed({buffer.data(), static_cast<std::size_t>(n)});
  while (!finish_ && !broken_) {
    Result<std::optional<bootstrap::wire::Frame>> frame = decoder_.next();
    if (!frame.ok()) broken_ = true;
    if (!frame.ok() || !*frame) return;
    handle(fromWire(std::move(**frame)));
  }
}

void Agent::handle(Frame frame) {
  switch (frame.type) {
    case Type::kStart:
      if (Result<launch::plan::JobPlan> plan = decodeStart(frame.body);
          plan.ok() && server_ == nullptr) {
        const Status prepared = prepareJob(std::move(*plan));
        return prepared.ok() ? send(encode(Type::kPrepared)) : refuse(prepared.message());
      }
      break;
    case Type::kGo:
      if (server_ == nullptr || !ranks_.all().empty()) break;
      if (const Status started = startJob(); !started.ok()) refuse(started.message());
      return;
    case Type::kSignal:
      if (Result<std::uint32_t> number = decodeNumber(frame.body); number.ok() && *number <= 64) {
        ranks_.signal(static_cast<int>(*number));
        return;
      }
      break;
    case Type::kInput: return takeInput(frame.body);
    case Type::kCredit:
      if (Result<std::uint32_t> number = decodeNumber(frame.body); number.ok()) {
        credit_ += *number;
        return;
      }
      break;
    case Type::kToRank:
      if (Result<Relay> relay = decodeRelay(frame.body); relay.ok() && server_) {
        server_->relay(relay->rank, std::move(relay->frame));
        return;
      }
      break;
    case Type::kRankEndedElsewhere:
      if (Result<bootstrap::RankEnd> end = decodeElsewhere(frame.body); end.ok()) {
        if (server_) server_->rankEnded(*end);
        return;
      }
      break;
    case Type::kHold:
      if (Result<std::uint32_t> number = decodeNumber(frame.body); number.ok()) {
        held_ = *number == 1;
        if (server_) server_->lookForStopped(!held_);
        return;
      }
      break;
    case Type::kAsk: return answer(frame.id, frame.body);
    case Type::kFinish: finish_ = true; return;
    case Type::kBeat: return;
    default: break;
  }
  std::fprintf(stderr, "farandole agent: the launcher sent something that is not understood\n");
  broken_ = true;
}

Status Agent::prepareJob(launch::plan::JobPlan plan) {
  plan_ = std::move(plan);
  adoptEnvironment(plan_);
  FARANDOLE_RETURN_IF_ERROR(launch::plan::settle(plan_));
  FARANDOLE_RETURN_IF_ERROR(ranks_.allowDescriptors(plan_.ranks.size()));
  FARANDOLE_RETURN_IF_ERROR(ranks_.open(plan_));
  bootstrap::AgentServer::Options options;
  options.job = plan_.job;
  options.secret = plan_.secret;
  options.size = plan_.size();
  options.host = plan_.ranks.front().host;
  options.toFirst = [this](int rank, std::string bytes) { mail_.put(rank, std::move(bytes)); };
  auto server = bootstrap::AgentServer::start(std::move(options));
  if (!server.ok()) return server.status();
  server_ = std::move(*server);
  plan_.agentSocket = server_->address();
  return {};
}

Status Agent::startJob() {
  int ends[2] = {-1, -1};
  if (plan_.ranks.front().rank == 0 && ::pipe2(ends, O_CLOEXEC) != 0) {
    return Status::fromErrno("cannot create a pipe", errno);
  }
  UniqueFd rankEnd(ends[0]);
  input_.reset(ends[1]);
  if (input_) makeNonBlocking(input_.get());
  FARANDOLE_RETURN_IF_ERROR(ranks_.start(plan_, rankEnd.get(), signals_->inherited()));
  std::vector<std::pair<int, int>> pids;
  for (const launch::local::RankProcess& rank : ranks_.all())
    pids.emplace_back(rank.rank(), rank.pid());
  send(encodePids(pids));
  storeMayOpen_ = plan_.size() > 1 && plan_.ranks.front().rank == 0;
  return {};
}

void Agent::refuse(const std::string& why) {
  ranks_.signal(SIGKILL);
  send(encode(Type::kRefused, why));
}

void Agent::takeInput(std::string_view bytes) {
  if (bytes.empty()) inputEnds_ = true;
  pendingInput_ += bytes;
  flushInput();
}

void Agent::flushInput() {
  const std::size_t before = pendingInput_.size();
  while (input_ && !pendingInput_.empty()) {
    const ssize_t n = ::write(input_.get(), pendingInput_.data(), pendingInput_.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) break;
    if (n < 0) input_.reset();  // rank 0 reads no more
    if (n > 0) pendingInput_.erase(0, static_cast<std::size_t>(n));
  }
  if (!input_) pendingInput_.clear();
  const std::size_t taken = before - pendingInput_.size();
  if (taken > 0) send(encodeNumber(Type::kTaken, static_cast<std::uint32_t>(taken)));
  if (inputEnds_ && pendingInput_.empty()) input_.reset();
}

void Agent::answer(std::uint64_t id, const std::string& question) {
  send(encode(Type::kReply, probe_.answerText(question), id));
}

void Agent::handleSignals() {
  while (const auto signal = signals_->next()) {
    if (*signal == SIGCHLD) {
      ranks_.reap();
    } else if (*signal == SIGTERM) {
      broken_ = true;  // this machine's part is asked to end
    }
  }
}

void Agent::passMail() {
  for (auto& [rank, frame] : mail_.take()) send(encodeRelay(Type::kFromRank, rank, frame));
}

void Agent::checkTime() {
  const TimePoint now = Clock::now();
  // While this process was stopped it could not hear the launcher, which probably was stopped too.
  if (suspension_.since(now) > Duration::zero()) heard_ = now;
  if (now >= nextBeat_) {
    send(encode(Type::kBeat));
    nextBeat_ = now + kBeatEvery;
  }
  if (storeMayOpen_ && now >= nextLook_) {
    nextLook_ = now + kLookEvery;
    storeMayOpen_ = !process::isListening(plan_.masterPort);
    if (!storeMayOpen_) send(encode(Type::kNoticed));
  }
  if (!held_ && now - heard_ > kSilence) {
    std::fprintf(stderr, "farandole agent: nothing heard from the launcher for 8 s\n");
    broken_ = true;
  }
}

void Agent::leave(bool inOrder) {
  if (!server_) return;
  ranks_.signal(SIGKILL);
  const Deadline deadline = Deadline::after(kGoodbye);
  while (ranks_.running() > 0 && !deadline.passed()) step(milliseconds(50));
  const std::string left = ranks_.endLeftovers(
      inOrder ? Duration(seconds(2)) : Duration::zero(), [this](Duration limit) { step(limit); },
      [&] { return !inOrder || broken_; });
  ranks_.finishOutput();
  if (server_) static_cast<void>(server_->reports());
  passMail();
  send(encode(Type::kGone, left));
  const Deadline goodbye = Deadline::after(kGoodbye);
  while (inOrder && !broken_ && !out_.empty() && !goodbye.passed()) step(milliseconds(50));
  ranks_.close();
}

bool Agent::takeFrom(int rank, launch::output::Stream stream, int pipe) {
  if (broken_ || !splice_.possible()) return false;
  // Another rank was first; this one is asked about again when there is room.
  if (!out_.empty() || splice_.busy() || full_) return true;
  const std::size_t bytes = splice_.worth(pipe, kMaxChunk);
  if (bytes == 0) return false;
  const auto begun = splice_.begin(pipe, encodeOutputHead(rank, stream, bytes), bytes);
  full_ = begun == OutputSplice::Begun::kNoRoom;
  broken_ = begun == OutputSplice::Begun::kBroken;
  if (full_ || broken_) return true;
  credit_ -= static_cast<std::int64_t>(bytes);
  pace_.took(bytes);
  flush();
  return true;
}

void Agent::aboutToDrain() {
  if (splice_.busy()) out_.pushFirst(splice_.recall());
}

void Agent::rankWrote(int rank, launch::output::Stream stream, std::string_view bytes) {
  pace_.took(bytes.size());
  while (!bytes.empty()) {
    const std::string_view chunk = bytes.substr(0, kMaxChunk);
    // Straight from the buffer it was read into, unless the pipe is full.
    if (!broken_ && !out_.send(1, encodeOutputHead(rank, stream, chunk.size()), chunk)) {
      broken_ = true;
    }
    credit_ -= static_cast<std::int64_t>(chunk.size());
    bytes.remove_prefix(chunk.size());
  }
}

void Agent::guardianReplaced(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "farandole agent: the guardian was killed, and %s\n",
               status.message().c_str());
}

void Agent::rankEnded(bootstrap::RankEnd end, bool ordered) {
  // What it reported before it ended must be sent before its end.
  if (server_) static_cast<void>(server_->reports());
  passMail();
  send(encodeRankEnded(end, ordered));
  if (end.rank == 0) input_.reset();
}

}  // namespace farandole::launch::remote
