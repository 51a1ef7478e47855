// JobRunner: starts the ranks of a plan on all its machines and looks after them until the last
// process of the job is gone.
//
// One thread, one loop: signals, the ranks' output, the other machines, the console's backlog and
// timers are its events. Other threads belong to the AgentServer and the console's writers. Create
// it and call run() once, on the main thread (the guardian is forked).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"
#include "bootstrap/agent_server.h"
#include "launch/local/local_ranks.h"
#include "launch/mpi/starter_process.h"
#include "launch/output/console.h"
#include "launch/output/output_pace.h"
#include "launch/output/rank_output.h"
#include "launch/plan/job_plan.h"
#include "launch/remote/bootstrap_relay.h"
#include "launch/remote/remote_hosts.h"
#include "launch/remote/stdin_forward.h"
#include "launch/supervise/first_cause.h"
#include "launch/supervise/stdin_pump.h"
#include "process/signals.h"

namespace farandole::launch::supervise {

// How a job is supervised and shown; what it is stands in the JobPlan.
struct RunSettings {
  launch::output::OutputFormat format;
  std::string outputFolder;  // "": none
  std::set<int> shownRanks;  // empty: all
  Duration grace = std::chrono::seconds(5);
  bool requireInit = false;
  bool requireLogs = false;
  bool quiet = false;
  bool verbose = false;
  Duration waitForHosts{};
  std::optional<launch::mpi::Starter> mpi{};  // of --engine mpi
};

class JobRunner : private launch::local::LocalRanks::Listener,
                  private launch::remote::RemoteHost::Listener {
 public:
  JobRunner(launch::plan::JobPlan plan, RunSettings settings,
            launch::remote::Connecting connecting);
  ~JobRunner() override;

  // What settle() has found out about this machine's part of the plan need not be found out again.
  void useSettled(const launch::plan::JobPlan& local) { settled_ = local; }

  // The launcher's exit code. An error means that the job could not be started; nothing of it is
  // left then.
  Result<int> run();

  // Whether a user's signal, or a reader who had enough, ended it: not a failure to start again
  // after.
  bool endedByUser() const { return interruptedBy_.has_value() || outputGone_; }

 private:
  struct RankState {
    launch::output::RankOutput output;
    bool started = false;
    std::optional<bootstrap::RankEnd> end;
    bool copyLost = false;  // has been said
    bool running() const { return started && !end; }
    bool endedWell() const { return end && !end->signalled && !end->hostLost && end->code == 0; }
  };

  Status prepare();
  Status startBootstrap();
  Status connectHosts();
  Status checkMachines();
  void checkAddresses();
  Status startRanks();
  Status startFailure();
  void chooseMaster();
  bool rankZeroIsLocal() const { return local_.ranks.size() > 0 && local_.ranks[0].rank == 0; }

  // One round of the loop; returns after `limit` at the latest.
  void step(Duration limit);
  void handleSignal(int signal);
  void interrupt(int signal);
  void checkConsole();
  void checkInit();
  void showStatus();
  void forwardStdin();
  void checkMpi();
  void endMpi();

  void wrote(int rank, launch::output::Stream stream, std::string_view bytes);
  // A log file that cannot be written is said once per rank.
  void tellLostCopy(int rank);
  void ended(bootstrap::RankEnd end, bool ordered);

  // Asks all ranks to end; those that have not after the grace period are killed.
  void beginEnding(int signal);
  void killRanks();
  void signalRanks(int signal);
  int runningRanks() const;
  void endLeftovers();
  void finishHosts();
  void finishOutput();
  void abandonStart();
  int conclude();
  void flushConsole();
  void flushTexts();
  void verbose(const std::string& text);
  RankState& state(int rank) { return ranks_.at(static_cast<std::size_t>(rank)); }

  // LocalRanks::Listener
  void rankWrote(int rank, launch::output::Stream stream, std::string_view bytes) override;
  void rankEnded(bootstrap::RankEnd end, bool ordered) override;
  void otherEnded(pid_t pid, const siginfo_t& info) override;
  void guardianReplaced(const Status& status) override;
  // RemoteHost::Listener
  void hostReady(launch::remote::RemoteHost& host) override;
  void hostFailed(launch::remote::RemoteHost& host, const std::string& why, bool mayPass) override;
  void hostStarted(launch::remote::RemoteHost& host,
                   const std::vector<std::pair<int, int>>& ranksAndPids) override;
  void remoteWrote(int rank, launch::output::Stream stream, std::string_view bytes) override;
  void remoteEnded(bootstrap::RankEnd end, bool ordered) override;
  void rankSaid(int rank, std::string frame) override;
  void hostFinished(launch::remote::RemoteHost& host, const std::string& leftovers) override;
  void hostReplied(launch::remote::RemoteHost&, std::uint64_t, const std::string&) override {}
  void inputTaken(std::size_t bytes) override { stdinForward_.taken(bytes); }
  void storeOpened() override { storeSeen_ = true; }
  void hostRemarked(launch::remote::RemoteHost& host, const std::string& text) override;
  void hostWarned(launch::remote::RemoteHost& host, const std::string& text) override;

  launch::plan::JobPlan plan_;
  launch::plan::JobPlan local_;  // this machine's part of it
  std::optional<launch::plan::JobPlan> settled_;
  const RunSettings settings_;
  launch::remote::Connecting connecting_;
  std::optional<process::SignalEvents> signals_;
  std::optional<launch::output::Console> console_;
  std::optional<StdinPump> stdin_;
  launch::remote::StdinForward stdinForward_;
  launch::remote::BootstrapRelay relay_{
      plan_, remotes_};  // outlives the AgentServer, whose thread uses it
  std::unique_ptr<bootstrap::AgentServer> bootstrap_;
  launch::local::LocalRanks locals_;
  launch::remote::RemoteHosts remotes_;
  std::optional<launch::mpi::StarterProcess> mpi_;
  std::vector<RankState> ranks_;
  std::array<std::string, 2> texts_;  // finished lines on their way to the console
  launch::output::OutputPace pace_;

  const TimePoint start_ = Clock::now();
  TimePoint nextCheck_;
  TimePoint killAt_ = TimePoint::max();
  bool ending_ = false;
  bool starting_ = true;
  bool storeSeen_ = false;  // a script has opened MASTER_PORT: torch.distributed

  // Why the job ended, in order of precedence.
  std::optional<int> interruptedBy_;
  bool outputGone_ = false;
  std::optional<std::string> problem_;
  FirstCause cause_;
  std::vector<std::string> hostFailures_;
  std::vector<bootstrap::AgentServer::RankReport> reportsAtCause_;
  Duration runtimeAtCause_{};
  bool outputErrorTold_ = false;
  bool giveUpOutput_ = false;
  bool flushing_ = false;  // all that remains is that our output is read
};

}  // namespace farandole::launch::supervise
