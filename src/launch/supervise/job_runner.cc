#include "launch/supervise/job_runner.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>

#include "base/posix.h"
#include "base/text.h"
#include "base/thread.h"
#include "launch/hosts/name_lookup.h"
#include "launch/remote/agent.h"
#include "launch/remote/master_address.h"
#include "launch/remote/same_addresses.h"
#include "launch/supervise/failure_screen.h"
#include "launch/supervise/init_watch.h"
#include "process/listening.h"
#include "process/machine_identity.h"
#include "process/poll_round.h"

namespace farandole::launch::supervise {
namespace {

using launch::remote::RemoteHost;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr auto kLongestStep = milliseconds(1000);
// How long the other machines' agents may take to clear up before we let go of them.
constexpr auto kFarewell = seconds(12);
// How long MPI's starter may take to notice that all its processes have gone.
constexpr auto kMpiLimit = seconds(3);
constexpr int kMostLastLines = 20;
constexpr std::size_t kLookUpsAtOnce = 64;
constexpr auto kStatusAfter = seconds(2);

}  // namespace

JobRunner::JobRunner(launch::plan::JobPlan plan, RunSettings settings,
                     launch::remote::Connecting connecting)
    : plan_(std::move(plan)),
      settings_(std::move(settings)),
      connecting_(std::move(connecting)),
      locals_(*this),
      remotes_(plan_, connecting_, *this, settings_.waitForHosts) {}

JobRunner::~JobRunner() = default;

Status JobRunner::prepare() {
  if (settings_.mpi) {
    mpi_.emplace(*settings_.mpi, plan_, connecting_.ssh, connecting_.tree.id,
                 connecting_.startLimit);
  }
  for (std::size_t i = 0; i < plan_.hosts.size(); ++i) {
    if (plan_.hosts[i].local) local_ = launch::plan::planFor(plan_, i);
  }
  if (settled_) {
    local_.command = settled_->command;
    local_.program = settled_->program;
    local_.ranks = settled_->ranks;
  }
  const std::size_t otherHosts = plan_.hosts.size() - (local_.ranks.empty() ? 0 : 1);
  const std::size_t logs = settings_.outputFolder.empty() ? 0 : 2 * plan_.ranks.size();
  FARANDOLE_RETURN_IF_ERROR(locals_.allowDescriptors(local_.ranks.size(), otherHosts, logs));
  for (const launch::plan::RankPlan& rank : plan_.ranks) {
    ranks_.push_back({launch::output::RankOutput(rank.rank, settings_.format), false, {}});
    if (settings_.outputFolder.empty()) continue;
    FARANDOLE_RETURN_IF_ERROR(ranks_.back().output.copyTo(settings_.outputFolder));
  }
  // Before the signals are blocked, so that the guardian has ordinary ones.
  FARANDOLE_RETURN_IF_ERROR(locals_.open(plan_));

  auto signals = process::SignalEvents::open();
  if (!signals.ok()) return signals.status();
  signals_ = std::move(*signals);
  auto console = launch::output::Console::open();
  if (!console.ok()) return console.status();
  console_.emplace(std::move(*console));
  if (rankZeroIsLocal()) {
    auto pump = StdinPump::open();
    if (!pump.ok()) return pump.status();
    stdin_ = std::move(*pump);
  }
  return relay_.open();
}

Status JobRunner::startBootstrap() {
  bootstrap::AgentServer::Options options;
  options.job = plan_.job;
  options.secret = plan_.secret;
  options.size = plan_.size();
  options.host = local_.ranks.empty() ? hostName() : local_.ranks.front().host;
  for (const launch::plan::RankPlan& rank : plan_.ranks) {
    if (!plan_.hosts[rank.hostIndex].local) options.remoteRanks.push_back(rank.rank);
  }
  options.toOther = [this](int rank, std::string frame) { relay_.toRank(rank, std::move(frame)); };
  auto server = bootstrap::AgentServer::start(std::move(options));
  if (!server.ok()) return server.status();
  bootstrap_ = std::move(*server);
  relay_.connect(*bootstrap_);
  local_.agentSocket = bootstrap_->address();
  return {};
}

// Everything is found out before anything is started.
Status JobRunner::connectHosts() {
  if (remotes_.empty()) return {};
  remotes_.connect(signals_->inherited(), locals_.files());
  while (!remotes_.allReady() && hostFailures_.empty() && !interruptedBy_) step(kLongestStep);
  if (hostFailures_.empty() && !interruptedBy_) return checkMachines();
  return hostFailures_.empty() ? Status() : startFailure();
}

Status JobRunner::startFailure() {
  // Others may fail for the same reason: all that is known in a moment is said at once.
  const Deadline moment = Deadline::after(milliseconds(300));
  while (!moment.passed() && !interruptedBy_) step(moment.left(milliseconds(50)));
  std::string text;
  for (const std::string& failure : hostFailures_) text += (text.empty() ? "" : "\n  ") + failure;
  return Status(Code::kUnavailable, text);
}

// Ranks that take one machine for two would share its processors, its GPU 0 and its memory without
// knowing.
Status JobRunner::checkMachines() {
  std::map<std::string, std::string> names;  // of machines
  if (!local_.ranks.empty()) names[process::machineIdentity()] = local_.ranks.front().host;
  for (std::size_t i = 0; i < plan_.hosts.size(); ++i) {
    const RemoteHost* host = remotes_.at(i);
    if (host == nullptr) continue;
    const auto [other, fresh] = names.try_emplace(host->hello().machine, host->name());
    if (fresh) continue;
    return Status::invalid("hosts " + other->second + " and " + host->name() +
                           " are the same machine: name it once, with all its slots (" +
                           other->second + ":N)");
  }
  checkAddresses();
  return {};
}

// Not an error: a job's ranks need not talk to each other.
void JobRunner::checkAddresses() {
  std::vector<launch::remote::HostAddresses> hosts;
  std::string launcher;  // as others see it
  for (std::size_t i = 0; i < plan_.hosts.size(); ++i) {
    const launch::plan::HostPlan& plan = plan_.hosts[i];
    const bool advertised = !plan.advertise.empty();
    if (const RemoteHost* host = remotes_.at(i)) {
      const launch::remote::Hello& hello = host->hello();
      hosts.push_back({plan.name, hello.network, hello.addresses, host->reachedAt(), advertised});
      launcher = launch::remote::launcherSeenFrom({hello.sshConnection, plan.name});
    } else if (plan.local && !local_.ranks.empty()) {
      hosts.push_back(launch::remote::addressesHere(plan.name, advertised));
    }
  }
  if (launch::remote::sameAddresses(hosts, {}).empty()) return;
  // Names are looked up only now, and in parallel: meanwhile the hosts hear nothing of us.
  inParallel(hosts.size(), kLookUpsAtOnce, [&](std::size_t i) {
    std::string& outside = hosts[i].outside;
    outside = outside.empty() ? launcher : launch::hosts::numericAddress(outside);
  });
  std::string ports;
  for (const auto& [name, value] : plan_.settings) {
    if (name == "FARANDOLE_DATA_PORTS") ports = value;
  }
  console_->message("warning: " + launch::remote::sameAddresses(hosts, ports));
}

// Where rank 0 can be reached from the other machines: as the user says, else as the machines see
// each other through ssh, which is known to work.
void JobRunner::chooseMaster() {
  const std::size_t first = plan_.ranks.front().hostIndex;
  if (plan_.masterAddress.empty()) {
    const std::string& advertised = plan_.hosts[first].advertise;
    plan_.masterAddress = advertised.substr(0, advertised.find(','));
  }
  if (plan_.masterAddress.empty() && !remotes_.empty()) {
    std::vector<launch::remote::SeenFrom> others;
    for (std::size_t i = 0; i < plan_.hosts.size(); ++i) {
      const RemoteHost* host = remotes_.at(i);
      if (host != nullptr) others.push_back({host->hello().sshConnection, host->reachedAt()});
      if (host != nullptr && i == first)
        plan_.masterAddress = launch::remote::addressOf(others.back());
    }
    if (plan_.masterAddress.empty()) plan_.masterAddress = launch::remote::ownAddressFor(others);
  }
  if (plan_.masterAddress.empty()) plan_.masterAddress = "127.0.0.1";
  if (plan_.masterPort == 0) {
    RemoteHost* host = remotes_.at(first);
    Result<int> free = launch::plan::freePort();
    plan_.masterPort = host != nullptr ? host->hello().freePort : free.ok() ? *free : 29500;
  }
  local_.masterAddress = plan_.masterAddress;
  local_.masterPort = plan_.masterPort;
}

Status JobRunner::startRanks() {
  chooseMaster();
  // No rank begins its work while it can still turn out that another cannot.
  remotes_.prepareAll(plan_);
  while (!remotes_.allPrepared() && hostFailures_.empty() && !interruptedBy_) step(kLongestStep);
  if (interruptedBy_) return {};
  if (!hostFailures_.empty()) return startFailure();
  remotes_.startAll();
  if (!local_.ranks.empty()) {
    FARANDOLE_RETURN_IF_ERROR(
        locals_.start(local_, stdin_ ? stdin_->rankFd() : -1, signals_->inherited()));
    if (stdin_) stdin_->releaseRankEnd();
    for (const launch::local::RankProcess& rank : locals_.all()) {
      state(rank.rank()).started = true;
      verbose("rank " + std::to_string(rank.rank()) + " is process " + std::to_string(rank.pid()));
    }
  }
  while (!remotes_.allStarted() && hostFailures_.empty() && !ending_ && !interruptedBy_) {
    step(kLongestStep);
  }
  if (mpi_ && hostFailures_.empty() && !ending_ && !interruptedBy_) {
    FARANDOLE_RETURN_IF_ERROR(mpi_->start(signals_->inherited(), locals_.files(), locals_.marks()));
  }
  // A user who interrupts now has no ranks yet that could be asked to end.
  if (interruptedBy_ && !ending_) return {};
  starting_ = false;
  return hostFailures_.empty() ? Status() : startFailure();
}

Result<int> JobRunner::run() {
  Status started = prepare();
  if (started.ok() && !local_.ranks.empty() && !settled_) started = launch::plan::settle(local_);
  if (started.ok()) started = startBootstrap();
  if (started.ok()) started = connectHosts();
  if (started.ok() && !interruptedBy_) started = startRanks();
  if (!started.ok() || (starting_ && interruptedBy_)) {
    abandonStart();
    if (interruptedBy_) return 128 + *interruptedBy_;
    return started;
  }
  nextCheck_ = Clock::now() + milliseconds(250);
  while (runningRanks() > 0) {
    step(kLongestStep);
    if (ending_ && Clock::now() >= killAt_ + launch::local::kKillLimit)
      break;  // said in conclude()
  }
  checkInit();
  endMpi();
  finishHosts();
  endLeftovers();
  finishOutput();
  const int code = conclude();
  flushConsole();
  locals_.close();
  return code;
}

void JobRunner::abandonStart() {
  if (signals_ && console_) {
    killRanks();
    while (runningRanks() > 0 && Clock::now() < killAt_ + launch::local::kKillLimit)
      step(kLongestStep);
    endMpi();
    finishHosts();
    endLeftovers();
    finishOutput();
    flushConsole();
  }
  locals_.close();
}

void JobRunner::step(Duration limit) {
  const TimePoint begin = Clock::now();
  TimePoint until = begin + limit;
  if (!ending_ && !starting_) until = std::min(until, nextCheck_);
  if (killAt_ > begin) until = std::min(until, killAt_);
  const bool gathers = pace_.rests(begin);
  process::PollRound round;
  round.on(signals_->fd(), POLLIN, [this] {
    while (const auto signal = signals_->next()) handleSignal(*signal);
  });
  round.on(console_->eventFd(), POLLIN, [this] { console_->acknowledge(); });
  round.on(console_->congested() || gathers ? -1 : locals_.outputFd(), POLLIN,
           [this] { locals_.readOutput(); });
  round.on(relay_.fd(), POLLIN, [this] { relay_.deliver(); });
  if (stdin_) {
    round.on(stdin_->waitFd(), static_cast<short>(stdin_->waitEvents()),
             [this] { stdin_->ready(); });
  } else {
    round.on(starting_ ? -1 : stdinForward_.waitFd(), POLLIN, [this] { forwardStdin(); });
  }
  if (mpi_) round.on(mpi_->fd(), POLLIN, [this] { mpi_->read(); });
  remotes_.addWaits(round, !gathers);
  round.run(pace_.left(begin, until - begin));
  if (!remotes_.empty()) pace_.took(remotes_.endRound());
  flushTexts();
  checkConsole();
  const TimePoint now = Clock::now();
  pace_.endRound(now);
  if (!ending_ && !starting_ && now >= nextCheck_) {
    if (stdin_) stdin_->retry();
    stdinForward_.retry();
    checkInit();
    // A job's store is there as long as its process group: no need to look when nobody starts.
    if (!storeSeen_ && rankZeroIsLocal() && plan_.size() > 1) {
      storeSeen_ = process::isListening(plan_.masterPort);
    }
    // Often while ranks start, seldom when they train.
    nextCheck_ = now + (now - start_ < seconds(10) ? milliseconds(250) : milliseconds(1000));
  }
  checkMpi();
  if (ending_ && now >= killAt_ && runningRanks() > 0) killRanks();
  showStatus();
}

// Shows the status on a terminal, once a job has taken long enough for a user to wonder.
void JobRunner::showStatus() {
  const auto elapsed = std::chrono::duration_cast<seconds>(Clock::now() - start_);
  if (settings_.quiet || elapsed < kStatusAfter || flushing_) return console_->setStatus({});
  char time[32];
  std::snprintf(time, sizeof(time), "%ld:%02ld", static_cast<long>(elapsed.count() / 60),
                static_cast<long>(elapsed.count() % 60));
  const std::string hosts =
      plan_.hosts.size() > 1 ? " on " + std::to_string(plan_.hosts.size()) + " hosts" : "";
  std::string what = std::to_string(runningRanks()) + " of " + std::to_string(plan_.size()) +
                     " ranks" + hosts + " running";
  if (starting_) what = "connecting to " + std::to_string(plan_.hosts.size()) + " hosts";
  if (ending_) what = "ending, " + std::to_string(runningRanks()) + " ranks left";
  console_->setStatus(std::string("farandole: ") + what + ", " + time);
}

void JobRunner::flushTexts() {
  for (const launch::output::Stream stream :
       {launch::output::Stream::kOut, launch::output::Stream::kErr}) {
    std::string& text = texts_[static_cast<std::size_t>(stream)];
    if (!text.empty()) console_->write(stream, std::exchange(text, console_->spare(stream)));
  }
}

void JobRunner::forwardStdin() {
  RemoteHost* host = remotes_.at(plan_.ranks.front().hostIndex);
  if (host == nullptr) return stdinForward_.stop();
  if (const auto bytes = stdinForward_.read())
    host->send(launch::remote::encode(launch::remote::Type::kInput, *bytes));
}

// Ranks that wait for an MPI that will not come, or for each other in one that is gone.
void JobRunner::checkMpi() {
  if (!mpi_ || ending_ || starting_ || runningRanks() == 0) return;
  problem_ = mpi_->failure(Clock::now());
  if (problem_) beginEnding(SIGTERM);
}

// It ends by itself when the ranks have, unless they failed to.
void JobRunner::endMpi() {
  if (!mpi_) return;
  for (const int signal : {0, SIGTERM, SIGKILL}) {
    if (signal == 0 && ending_) continue;
    if (signal != 0) mpi_->signal(signal);
    const Deadline deadline = Deadline::after(kMpiLimit);
    while (mpi_->running() && !deadline.passed() && !(giveUpOutput_ && signal != SIGKILL)) {
      step(deadline.left(milliseconds(50)));
    }
  }
}

void JobRunner::checkConsole() {
  if (!console_->congested()) remotes_.creditAll();
  const int error = console_->error(launch::output::Stream::kOut);
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
    case SIGCHLD: locals_.reap(); break;
    case SIGTSTP:
      // Process 1 of a container cannot be stopped, and has no shell that would let it go on.
      if (::getpid() == 1) break;
      if (bootstrap_) bootstrap_->lookForStopped(false);
      signalRanks(SIGTSTP);
      // Otherwise the agents would take our silence for our death.
      remotes_.sendAll(launch::remote::encodeNumber(launch::remote::Type::kHold, 1));
      ::raise(SIGSTOP);
      break;
    case SIGCONT:
      signalRanks(SIGCONT);
      remotes_.sendAll(launch::remote::encodeNumber(launch::remote::Type::kHold, 0));
      if (bootstrap_) bootstrap_->lookForStopped(true);
      if (stdin_) stdin_->retry();
      stdinForward_.retry();
      break;
    default: interrupt(signal);
  }
}

void JobRunner::interrupt(int signal) {
  const bool over = runningRanks() == 0 && !starting_;
  giveUpOutput_ = giveUpOutput_ || interruptedBy_.has_value() || over;
  if (interruptedBy_) return killRanks();
  interruptedBy_ = signal;
  if (runningRanks() == 0) return;
  if (!settings_.quiet) {
    console_->message(process::signalName(signal) + ": asking " + std::to_string(runningRanks()) +
                      " ranks to end (once more to kill them)");
  }
  beginEnding(signal == SIGINT ? SIGINT : SIGTERM);
}

void JobRunner::wrote(int rank, launch::output::Stream stream, std::string_view bytes) {
  if (rank < 0 || rank >= plan_.size()) return;
  const bool shown = settings_.shownRanks.empty() || settings_.shownRanks.contains(rank);
  std::string hidden;
  launch::output::RankOutput& output = state(rank).output;
  output.feed(stream, bytes, shown ? texts_[static_cast<std::size_t>(stream)] : hidden);
  if (output.copyError() != 0) tellLostCopy(rank);
}

void JobRunner::tellLostCopy(int rank) {
  RankState& about = state(rank);
  if (std::exchange(about.copyLost, true)) return;
  console_->message("the output of rank " + std::to_string(rank) +
                    " is no longer kept: cannot write to " + about.output.copyFolder() + ": " +
                    std::strerror(about.output.copyError()));
}

void JobRunner::ended(bootstrap::RankEnd end, bool ordered) {
  if (end.rank < 0 || end.rank >= plan_.size() || state(end.rank).end) return;
  RankState& rank = state(end.rank);
  rank.started = true;
  end.host = plan_.ranks[static_cast<std::size_t>(end.rank)].host;
  end.lastLines = rank.output.lastLines(kMostLastLines);
  rank.end = end;
  const bool known = cause_.get().has_value();
  if (!known && !rank.endedWell()) reportsAtCause_ = bootstrap_->reports();
  bootstrap_->rankEnded(end);
  if (!rank.endedWell()) remotes_.sendAll(launch::remote::encodeElsewhere(end));
  // A rank that gives up inside init because another never came is not the cause.
  if (!end.signalled) checkInit();
  // Whatever ranks do once the user has asked them to end is no failure.
  if (!interruptedBy_ && !problem_ && !outputGone_) {
    cause_.observe(end, Clock::now(), ordered && ending_);
  }
  verbose(bootstrap::describe(end));
  if (cause_.get() && !known) {
    runtimeAtCause_ = Clock::now() - start_;
    beginEnding(SIGTERM);
  }
  if (end.rank == 0 && stdin_) stdin_->stop();
  if (end.rank == 0) stdinForward_.stop();
}

void JobRunner::checkInit() {
  if (ending_ || starting_) return;
  std::vector<bool> endedWell;
  for (const RankState& rank : ranks_) endedWell.push_back(rank.endedWell());
  problem_ = findInitProblem(bootstrap_->reports(), endedWell);
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
  locals_.signal(signal);
  remotes_.sendAll(launch::remote::encodeNumber(launch::remote::Type::kSignal,
                                                static_cast<std::uint32_t>(signal)));
}

int JobRunner::runningRanks() const {
  return static_cast<int>(std::count_if(ranks_.begin(), ranks_.end(),
                                        [](const RankState& rank) { return rank.running(); }));
}

// The agents end what the ranks left behind, and then themselves.
void JobRunner::finishHosts() {
  if (remotes_.empty()) return;
  remotes_.finishAll();
  const Deadline farewell = Deadline::after(kFarewell);
  while (!remotes_.allOver() && !farewell.passed() && !giveUpOutput_) {
    step(farewell.left(milliseconds(100)));
  }
  for (const std::string& name : remotes_.notOver()) {
    console_->message("warning: " + name + " has not confirmed that everything there has ended");
  }
  remotes_.dropAll();
}

void JobRunner::endLeftovers() {
  const bool inOrder = !ending_;
  const std::string what = locals_.endLeftovers(
      settings_.grace, [this](Duration limit) { step(limit); }, [this] { return giveUpOutput_; });
  ending_ = true;
  if (!what.empty() && inOrder && !settings_.quiet) {
    console_->message("ended " + what + " that the ranks had left behind");
  }
}

void JobRunner::finishOutput() {
  locals_.finishOutput();
  for (const launch::plan::RankPlan& rank : plan_.ranks) {
    const bool shown = settings_.shownRanks.empty() || settings_.shownRanks.contains(rank.rank);
    std::array<std::string, 2> hidden;
    auto& texts = shown ? texts_ : hidden;
    for (const launch::output::Stream stream :
         {launch::output::Stream::kOut, launch::output::Stream::kErr}) {
      state(rank.rank).output.finish(stream, texts[static_cast<std::size_t>(stream)]);
    }
    if (state(rank.rank).output.copyError() != 0) tellLostCopy(rank.rank);
  }
  flushTexts();
}

int JobRunner::conclude() {
  for (const launch::local::RankProcess& rank : locals_.all()) {
    if (rank.running()) {
      console_->message("rank " + std::to_string(rank.rank()) + " (process " +
                        std::to_string(rank.pid()) +
                        ") does not die, not even of SIGKILL: the kernel holds it");
    }
  }
  if (interruptedBy_) return 128 + *interruptedBy_;
  if (outputGone_) return 128 + SIGPIPE;
  for (const std::string& failure : hostFailures_) console_->message(failure);
  if (problem_) {
    console_->message("the job was ended: " + *problem_);
    return 1;
  }
  if (cause_.get()) {
    // What the ranks did then is only what their MPI makes of it.
    if (mpi_ && mpi_->wasKilled()) console_->message(mpi_->describe());
    const bootstrap::RankEnd& cause = *cause_.get();
    std::set<int> gone{cause.rank};
    for (const RankState& rank : ranks_) {
      const bool together = cause.hostLost && rank.end && rank.end->hostLost;
      if (together && rank.end->host == cause.host) gone.insert(rank.end->rank);
    }
    console_->write(launch::output::Stream::kErr,
                    failureScreen(cause, gone, reportsAtCause_, runtimeAtCause_, cause_.exitCode(),
                                  launch::output::wantsColour(launch::output::Stream::kErr)));
    return cause_.exitCode();
  }
  if (plan_.size() > 1 && !storeSeen_ && !anyInitialised(bootstrap_->reports())) {
    const std::string fact =
        "none of the " + std::to_string(plan_.size()) +
        " ranks initialised Farandole or torch.distributed, so they may not have worked together";
    if (settings_.requireInit) {
      console_->message(fact + " (--require-init)");
      return 1;
    }
    if (!settings_.quiet) {
      console_->message(
          "warning: " + fact +
          " (MPI is not seen from here; --quiet hides this, --require-init makes it an "
          "error)");
    }
  }
  const auto lost = std::count_if(ranks_.begin(), ranks_.end(),
                                  [](const RankState& rank) { return rank.copyLost; });
  if (settings_.requireLogs && lost > 0) {
    console_->message("the output of " + std::to_string(lost) + " of " +
                      std::to_string(plan_.size()) + " ranks was not kept (--require-logs)");
    return 1;
  }
  return 0;
}

// No deadline but the user: a pager may hold our output for as long as it is being read.
void JobRunner::flushConsole() {
  flushing_ = true;
  console_->setStatus({});
  console_->tellWhenIdle();
  while (!console_->idle() && !giveUpOutput_) step(kLongestStep);
}

void JobRunner::verbose(const std::string& text) {
  if (settings_.verbose) console_->message(text);
}

void JobRunner::rankWrote(int rank, launch::output::Stream stream, std::string_view bytes) {
  pace_.took(bytes.size());
  wrote(rank, stream, bytes);
}

void JobRunner::rankEnded(bootstrap::RankEnd end, bool ordered) { ended(std::move(end), ordered); }

void JobRunner::otherEnded(pid_t pid, const siginfo_t& info) {
  if (mpi_ && mpi_->childEnded(pid, info)) return;
  remotes_.childEnded(pid, info);
}

void JobRunner::guardianReplaced(const Status& status) {
  if (status.ok()) return verbose("the guardian of this machine was killed; there is a new one");
  console_->message("warning: the guardian of this machine was killed, and " + status.message() +
                    ": if the launcher is killed too, processes of the job may stay");
}

void JobRunner::remoteWrote(int rank, launch::output::Stream stream, std::string_view bytes) {
  wrote(rank, stream, bytes);
}

void JobRunner::remoteEnded(bootstrap::RankEnd end, bool ordered) {
  ended(std::move(end), ordered);
}

void JobRunner::rankSaid(int rank, std::string frame) { relay_.fromRank(rank, std::move(frame)); }

void JobRunner::hostReady(RemoteHost& host) {
  verbose("host " + host.name() + " is ready (" + host.hello().hostName + ", " +
          std::to_string(host.hello().cpus) + " processors)");
}

void JobRunner::hostStarted(RemoteHost& host, const std::vector<std::pair<int, int>>& pids) {
  for (const auto& [rank, pid] : pids) {
    if (rank < 0 || rank >= plan_.size()) continue;
    state(rank).started = true;
    verbose("rank " + std::to_string(rank) + " is process " + std::to_string(pid) + " on " +
            host.name());
  }
}

void JobRunner::hostFailed(RemoteHost& host, const std::string& why, bool mayPass) {
  if (starting_ && mayPass && !interruptedBy_ && remotes_.tryAgainLater(host)) {
    return verbose("host " + host.name() + ": " + why + "; trying again");
  }
  hostFailures_.push_back("host " + host.name() + ": " + why);
  std::vector<std::int32_t> lost;
  for (const launch::plan::RankPlan& rank : plan_.ranks) {
    if (rank.hostIndex == host.index() && state(rank.rank).running()) lost.push_back(rank.rank);
  }
  for (const std::int32_t rank : lost) {
    bootstrap::RankEnd end;
    end.rank = rank;
    end.hostLost = true;
    end.code = 1;
    if (lost.size() > 1) {
      end.account = rankList(lost) + " on " + plan_.ranks[static_cast<std::size_t>(rank)].host +
                    " are out of reach: their host was lost";
    }
    ended(std::move(end), false);
  }
}

void JobRunner::hostFinished(RemoteHost& host, const std::string& leftovers) {
  if (leftovers.empty() || ending_ || settings_.quiet) return;
  console_->message("ended " + leftovers + " that the ranks had left behind on " + host.name());
}

void JobRunner::hostRemarked(RemoteHost& host, const std::string& text) {
  verbose("host " + host.name() + ": " + text);
}

void JobRunner::hostWarned(RemoteHost& host, const std::string& text) {
  console_->message("host " + host.name() + ": " + text);
}

}  // namespace farandole::launch::supervise
