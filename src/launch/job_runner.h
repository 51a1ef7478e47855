// JobRunner: starts the ranks of a plan on this machine and looks after them until the last process
// of the job is gone.
//
// One thread, one loop: signals, the ranks' output, the console's backlog and timers are its
// events. Other threads belong to the AgentServer and the console's writers. Create it and call
// run() once, on the main thread, before any other thread has been started (the guardian is
// forked).
#pragma once

#include <sys/resource.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"
#include "bootstrap/agent_server.h"
#include "launch/console.h"
#include "launch/first_cause.h"
#include "launch/guardian.h"
#include "launch/job_plan.h"
#include "launch/leftovers.h"
#include "launch/rank_process.h"
#include "launch/signals.h"
#include "launch/stdin_pump.h"

namespace farandole {

// How a job is supervised and shown; what it is stands in the JobPlan.
struct RunSettings {
  OutputFormat format;
  std::string outputFolder;  // "": none
  Duration grace = std::chrono::seconds(5);
  bool requireInit = false;
  bool quiet = false;
  bool verbose = false;
};

class JobRunner {
 public:
  JobRunner(JobPlan plan, RunSettings settings);
  ~JobRunner();

  // The launcher's exit code. An error means that the job could not be started; nothing of it is
  // left then.
  Result<int> run();

 private:
  Status prepare();
  Status allowDescriptors();
  Status startRanks();
  Status watch(int epoll, int fd, std::uint64_t key, unsigned events);

  // One round of the loop; returns after `limit` at the latest.
  void step(Duration limit);
  void readOutputs();
  void updateStdin();
  void handleSignal(int signal);
  void interrupt(int signal);
  void reap();
  void rankEnded(RankProcess& rank, const siginfo_t& info);
  void checkConsole();
  void checkInit();

  // Asks all ranks to end; those that have not after the grace period are killed.
  void beginEnding(int signal);
  void killRanks();
  void signalRanks(int signal);
  int runningRanks() const;
  void endLeftovers();
  void finishOutput();
  int conclude();
  void flushConsole();
  void push(std::array<std::string, 2>& texts);
  void verbose(const std::string& text);

  JobPlan plan_;
  const RunSettings settings_;
  std::optional<Guardian> guardian_;
  std::optional<SignalEvents> signals_;
  std::optional<Console> console_;
  std::optional<StdinPump> stdin_;
  std::unique_ptr<AgentServer> agent_;
  std::vector<RankProcess> ranks_;
  Leftovers leftovers_;
  rlimit files_{};  // the limit we were started with

  UniqueFd events_;   // epoll: everything
  UniqueFd outputs_;  // epoll inside events_: the ranks' pipes, taken out as one while congested
  bool outputsWatched_ = false;
  int stdinWatched_ = -1;

  const TimePoint start_ = Clock::now();
  TimePoint nextCheck_;
  TimePoint killAt_ = TimePoint::max();
  bool ending_ = false;

  // Why the job ended, in order of precedence.
  std::optional<int> interruptedBy_;
  bool outputGone_ = false;
  std::optional<std::string> problem_;
  FirstCause cause_;
  std::vector<AgentServer::RankReport> reportsAtCause_;
  Duration runtimeAtCause_{};
  bool outputErrorTold_ = false;
  bool giveUpOutput_ = false;
};

}  // namespace farandole
