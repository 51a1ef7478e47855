#include "launch/job_runner.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "launch/failure_screen.h"
#include "launch/init_watch.h"

namespace farandole {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

enum Event : std::uint64_t { kSignals, kConsole, kOutputs, kStdin };

constexpr auto kLongestStep = milliseconds(1000);
// How long a killed process may take to vanish (large memory, a slow disk) before we give it up.
constexpr auto kKillPatience = seconds(10);
// Helpers of a rank that notice its end by themselves are given this long to do so.
constexpr auto kLeftoverPatience = milliseconds(250);

}  // namespace

JobRunner::JobRunner(JobPlan plan, RunSettings settings)
    : plan_(std::move(plan)), settings_(std::move(settings)), leftovers_(plan_.job) {}

JobRunner::~JobRunner() = default;

Status JobRunner::watch(int epoll, int fd, std::uint64_t key, unsigned events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = key;
  if (::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0) return {};
  return Status::fromErrno("cannot watch a descriptor", errno);
}

Status JobRunner::prepare() {
  for (const RankPlan& rank : plan_.ranks) ranks_.emplace_back(rank, settings_.format);
  if (!settings_.outputFolder.empty()) {
    for (RankProcess& rank : ranks_) {
      FARANDOLE_RETURN_IF_ERROR(rank.copyOutputTo(settings_.outputFolder));
    }
  }
  FARANDOLE_RETURN_IF_ERROR(allowDescriptors());
  // Before the signals are blocked, so that the guardian has ordinary ones.
  auto guardian = Guardian::start(plan_.job);
  if (!guardian.ok()) return guardian.status();
  guardian_ = std::move(*guardian);
  Leftovers::adoptOrphans();

  auto signals = SignalEvents::open();
  if (!signals.ok()) return signals.status();
  signals_ = std::move(*signals);
  auto console = Console::open();
  if (!console.ok()) return console.status();
  console_.emplace(std::move(*console));
  auto pump = StdinPump::open();
  if (!pump.ok()) return pump.status();
  stdin_ = std::move(*pump);
  events_.reset(::epoll_create1(EPOLL_CLOEXEC));
  outputs_.reset(::epoll_create1(EPOLL_CLOEXEC));
  if (!events_ || !outputs_) return Status::fromErrno("cannot create an epoll", errno);
  FARANDOLE_RETURN_IF_ERROR(watch(events_.get(), signals_->fd(), kSignals, EPOLLIN));
  FARANDOLE_RETURN_IF_ERROR(watch(events_.get(), console_->eventFd(), kConsole, EPOLLIN));
  FARANDOLE_RETURN_IF_ERROR(watch(events_.get(), outputs_.get(), kOutputs, EPOLLIN));
  outputsWatched_ = true;

  auto agent =
      AgentServer::start({plan_.job, plan_.secret, plan_.size(), plan_.ranks.front().host});
  if (!agent.ok()) return agent.status();
  agent_ = std::move(*agent);
  plan_.agentAddress = agent_->address();
  return {};
}

// Two pipes and the agent's connections for each rank. The ranks get the old limit back.
Status JobRunner::allowDescriptors() {
  const rlim_t needed = 64 + 6 * static_cast<rlim_t>(plan_.size());
  if (::getrlimit(RLIMIT_NOFILE, &files_) != 0 || files_.rlim_cur >= needed) return {};
  const rlimit raised{needed, files_.rlim_max};
  if (needed <= files_.rlim_max && ::setrlimit(RLIMIT_NOFILE, &raised) == 0) return {};
  return Status::invalid(std::to_string(plan_.size()) + " ranks need " + std::to_string(needed) +
                         " open files, and the limit is " + std::to_string(files_.rlim_max) +
                         ": raise it (ulimit -Hn), or start fewer ranks");
}

Status JobRunner::startRanks() {
  UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!null) return Status::fromErrno("cannot open /dev/null", errno);
  for (RankProcess& rank : ranks_) {
    const int input = rank.rank() == 0 ? stdin_->rankFd() : null.get();
    FARANDOLE_RETURN_IF_ERROR(rank.start(plan_, input, signals_->inherited(), files_));
    if (rank.rank() == 0) stdin_->releaseRankEnd();
    verbose("rank " + std::to_string(rank.rank()) + " is process " + std::to_string(rank.pid()));
    for (const Stream stream : {Stream::kOut, Stream::kErr}) {
      const auto key = static_cast<std::uint64_t>(rank.rank()) * 2 + static_cast<unsigned>(stream);
      FARANDOLE_RETURN_IF_ERROR(watch(outputs_.get(), rank.pipe(stream), key, EPOLLIN));
    }
  }
  return {};
}

Result<int> JobRunner::run() {
  Status started = prepare();
  if (started.ok()) started = startRanks();
  if (!started.ok()) {
    if (signals_ && console_ && events_) {
      killRanks();
      while (runningRanks() > 0 && Clock::now() < killAt_ + kKillPatience) step(kLongestStep);
      ending_ = true;
      endLeftovers();
    }
    if (guardian_) guardian_->dismiss();
    return started;
  }
  updateStdin();
  nextCheck_ = Clock::now() + milliseconds(250);
  while (runningRanks() > 0) {
    step(kLongestStep);
    if (ending_ && Clock::now() >= killAt_ + kKillPatience) break;  // said in conclude()
  }
  checkInit();
  endLeftovers();
  finishOutput();
  const int code = conclude();
  flushConsole();
  guardian_->dismiss();
  return code;
}

void JobRunner::step(Duration limit) {
  TimePoint until = Clock::now() + limit;
  if (!ending_) until = std::min(until, nextCheck_);
  if (killAt_ > Clock::now()) until = std::min(until, killAt_);
  const auto wait = std::chrono::ceil<milliseconds>(until - Clock::now()).count();
  epoll_event ready[8];
  const int n =
      ::epoll_wait(events_.get(), ready, 8, static_cast<int>(std::max<std::int64_t>(0, wait)));
  bool outputs = false;
  for (int i = 0; i < n; ++i) {
    switch (ready[i].data.u64) {
      case kSignals:
        while (const auto signal = signals_->next()) handleSignal(*signal);
        break;
      case kConsole: console_->acknowledge(); break;
      case kOutputs: outputs = true; break;
      case kStdin: stdin_->ready(); break;
    }
  }
  if (outputs) readOutputs();
  checkConsole();
  updateStdin();
  const TimePoint now = Clock::now();
  if (!ending_ && now >= nextCheck_) {
    stdin_->retry();
    checkInit();
    // Often while ranks start, seldom when they train.
    nextCheck_ = now + (now - start_ < seconds(10) ? milliseconds(250) : milliseconds(1000));
  }
  if (ending_ && now >= killAt_ && runningRanks() > 0) killRanks();
}

void JobRunner::readOutputs() {
  epoll_event ready[64];
  const int n = ::epoll_wait(outputs_.get(), ready, 64, 0);
  std::array<std::string, 2> texts;
  for (int i = 0; i < n; ++i) {
    const auto key = ready[i].data.u64;
    const auto stream = static_cast<Stream>(key % 2);
    ranks_[key / 2].readSome(stream, texts[key % 2]);
  }
  push(texts);
}

void JobRunner::push(std::array<std::string, 2>& texts) {
  for (const Stream stream : {Stream::kOut, Stream::kErr}) {
    console_->write(stream, std::move(texts[static_cast<std::size_t>(stream)]));
  }
}

// The descriptor to wait for changes between the terminal and the pipe.
void JobRunner::updateStdin() {
  const int fd = stdin_->waitFd();
  if (stdinWatched_ >= 0 && stdinWatched_ != fd) {
    // Fails if the pump has closed it, which has taken it out already.
    ::epoll_ctl(events_.get(), EPOLL_CTL_DEL, stdinWatched_, nullptr);
    stdinWatched_ = -1;
  }
  if (fd >= 0 && stdinWatched_ != fd) {
    if (watch(events_.get(), fd, kStdin, stdin_->waitEvents()).ok()) {
      stdinWatched_ = fd;
    } else {
      stdin_->stop();
    }
  }
}

void JobRunner::checkConsole() {
  const bool wanted = !console_->congested();
  if (wanted != outputsWatched_) {
    if (wanted) {
      outputsWatched_ = watch(events_.get(), outputs_.get(), kOutputs, EPOLLIN).ok();
    } else {
      ::epoll_ctl(events_.get(), EPOLL_CTL_DEL, outputs_.get(), nullptr);
      outputsWatched_ = false;
    }
  }
  const int error = console_->error(Stream::kOut);
  if (error == 0 || outputErrorTold_) return;
  outputErrorTold_ = true;
  if (error == EPIPE) {
    // Our reader has seen enough (| head).
    outputGone_ = true;
    beginEnding(SIGTERM);
  } else {
    console_->message(std::string("the ranks' output is lost from here on: cannot write it: ") +
                      std::strerror(error));
  }
}

void JobRunner::handleSignal(int signal) {
  switch (signal) {
    case SIGCHLD: reap(); break;
    case SIGTSTP:
      signalRanks(SIGTSTP);
      ::raise(SIGSTOP);
      break;
    case SIGCONT:
      signalRanks(SIGCONT);
      stdin_->retry();
      break;
    default: interrupt(signal);
  }
}

void JobRunner::interrupt(int signal) {
  giveUpOutput_ = giveUpOutput_ || interruptedBy_.has_value() || runningRanks() == 0;
  if (interruptedBy_) return killRanks();
  interruptedBy_ = signal;
  if (runningRanks() == 0) return;
  if (!settings_.quiet) {
    console_->message(signalName(signal) + ": asking " + std::to_string(runningRanks()) +
                      " ranks to end (once more to kill them)");
  }
  beginEnding(signal == SIGINT ? SIGINT : SIGTERM);
}

void JobRunner::reap() {
  while (true) {
    siginfo_t info{};
    if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG) != 0 || info.si_pid == 0) return;
    for (RankProcess& rank : ranks_) {
      if (rank.running() && rank.pid() == info.si_pid) rankEnded(rank, info);
    }
  }
}

void JobRunner::rankEnded(RankProcess& rank, const siginfo_t& info) {
  std::array<std::string, 2> texts;
  rank.drain(texts);
  push(texts);
  const RankEnd& end = rank.setEnd(info);
  const bool ordered = ending_ && end.signalled && rank.wasSent(end.code);
  const bool known = cause_.get().has_value();
  if (!known) reportsAtCause_ = agent_->reports();
  agent_->rankEnded(end);
  // A rank that gives up inside init because another never came is not the cause.
  if (!end.signalled) checkInit();
  // Whatever ranks do once the user has asked them to end is no failure.
  if (!interruptedBy_ && !problem_ && !outputGone_) cause_.observe(end, Clock::now(), ordered);
  verbose(describe(end));
  if (cause_.get() && !known) {
    runtimeAtCause_ = Clock::now() - start_;
    beginEnding(SIGTERM);
  }
  if (rank.rank() == 0) stdin_->stop();
}

void JobRunner::checkInit() {
  if (ending_) return;
  std::vector<bool> endedWell;
  for (const RankProcess& rank : ranks_) endedWell.push_back(rank.endedWell());
  problem_ = findInitProblem(agent_->reports(), endedWell);
  if (problem_) beginEnding(SIGTERM);
}

void JobRunner::beginEnding(int signal) {
  if (ending_) return;
  ending_ = true;
  killAt_ = Clock::now() + settings_.grace;
  signalRanks(signal);
}

void JobRunner::killRanks() {
  ending_ = true;
  killAt_ = std::min(killAt_, Clock::now());
  signalRanks(SIGKILL);
}

void JobRunner::signalRanks(int signal) {
  for (RankProcess& rank : ranks_) rank.signal(signal);
}

int JobRunner::runningRanks() const {
  return static_cast<int>(std::count_if(ranks_.begin(), ranks_.end(),
                                        [](const RankProcess& rank) { return rank.running(); }));
}

void JobRunner::endLeftovers() {
  reap();
  const auto waitFor = [&](Duration patience) {
    const Deadline deadline = Deadline::after(patience);
    while (Leftovers::haveChildren() && !deadline.passed() && !giveUpOutput_) {
      step(deadline.left(milliseconds(50)));
      reap();
    }
  };
  waitFor(kLeftoverPatience);
  if (!Leftovers::haveChildren()) return;
  const bool inOrder = !ending_;
  ending_ = true;
  leftovers_.signalAll(SIGTERM);
  waitFor(settings_.grace);
  const Deadline deadline = Deadline::after(kKillPatience);
  while (Leftovers::haveChildren() && !deadline.passed()) {
    leftovers_.signalAll(SIGKILL);
    step(milliseconds(10));
    reap();
  }
  const std::string what = leftovers_.describe();
  if (!what.empty() && inOrder && !settings_.quiet) {
    console_->message("ended " + what + " that the ranks had left behind");
  }
}

void JobRunner::finishOutput() {
  std::array<std::string, 2> texts;
  for (RankProcess& rank : ranks_) rank.finishOutput(texts);
  push(texts);
}

int JobRunner::conclude() {
  for (const RankProcess& rank : ranks_) {
    if (rank.running()) {
      console_->message("rank " + std::to_string(rank.rank()) + " (process " +
                        std::to_string(rank.pid()) +
                        ") does not die, not even of SIGKILL: the kernel holds it");
    }
  }
  if (interruptedBy_) return 128 + *interruptedBy_;
  if (outputGone_) return 128 + SIGPIPE;
  if (problem_) {
    console_->message("the job was ended: " + *problem_);
    return 1;
  }
  if (cause_.get()) {
    console_->write(Stream::kErr, failureScreen(*cause_.get(), reportsAtCause_, runtimeAtCause_,
                                                cause_.exitCode(), wantsColour(Stream::kErr)));
    return cause_.exitCode();
  }
  if (plan_.size() > 1 && !anyInitialised(agent_->reports())) {
    const std::string fact = "none of the " + std::to_string(plan_.size()) +
                             " ranks initialised Farandole, so they may not have worked together";
    if (settings_.requireInit) {
      console_->message(fact + " (--require-init)");
      return 1;
    }
    if (!settings_.quiet) {
      console_->message("warning: " + fact +
                        " (torch.distributed and MPI are not seen from here; --quiet hides this, "
                        "--require-init makes it an error)");
    }
  }
  return 0;
}

// No deadline but the user: a pager may hold our output for as long as it is being read.
void JobRunner::flushConsole() {
  while (!console_->idle() && !giveUpOutput_) step(kLongestStep);
}

void JobRunner::verbose(const std::string& text) {
  if (settings_.verbose) console_->message(text);
}

}  // namespace farandole
