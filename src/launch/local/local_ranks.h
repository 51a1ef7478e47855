// LocalRanks: the ranks that run on this machine: started, read from, signalled, reaped, and what
// they leave behind ended. The launcher has one for its own machine, every agent has one for its.
//
// Main thread only. Nothing here waits, but endLeftovers(), which lets its owner go on meanwhile.
#pragma once

#include <sys/resource.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"
#include "bootstrap/bootstrap.h"
#include "launch/local/guardian.h"
#include "launch/local/rank_process.h"
#include "launch/plan/job_plan.h"
#include "process/job_marks.h"
#include "process/leftovers.h"
#include "process/signals.h"

namespace farandole::launch::local {

// How long a killed process may take to vanish (large memory, a slow disk) before we give it up.
inline constexpr auto kKillLimit = std::chrono::seconds(10);

class LocalRanks {
 public:
  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void rankWrote(int rank, launch::output::Stream stream, std::string_view bytes) = 0;
    // There is something in this pipe. True: it has been dealt with, or will be when asked again.
    virtual bool takeFrom(int /*rank*/, launch::output::Stream, int /*pipe*/) { return false; }
    // The pipes will be read until they are empty.
    virtual void aboutToDrain() {}
    // Everything it wrote has been handed over before. ordered: it died of a signal sent from here.
    virtual void rankEnded(bootstrap::RankEnd end, bool ordered) = 0;
    // A child that is no rank.
    virtual void otherEnded(pid_t pid, const siginfo_t& info) = 0;
    // The guardian was killed; `status` says whether there is a new one.
    virtual void guardianReplaced(const Status& status) = 0;
  };

  explicit LocalRanks(Listener& listener) : listener_(listener) {}

  // Before the first rank: starts the guardian, makes the folders that MPI needs, and adopts the
  // orphans of this process's descendants.
  Status open(const launch::plan::JobPlan& plan);
  // Nothing is left to guard. Until then the guardian would end the job if we vanished.
  void close();
  // For so many ranks of this machine, other hosts, and log files; the ranks themselves get the old
  // limit.
  Status allowDescriptors(std::size_t ranks, std::size_t hosts = 0, std::size_t logs = 0);

  // A settled plan of this machine. Rank 0, if it is here, reads from stdinFd.
  Status start(const launch::plan::JobPlan& plan, int stdinFd,
               const process::InheritedSignals& signals);

  // Readable when a rank has written something.
  int outputFd() const { return outputs_.get(); }
  // One round over the pipes that have something.
  void readOutput();
  // Everything that has been written; then the pipes are closed.
  void finishOutput();

  void signal(int number);
  void reap();
  int running() const;
  const std::vector<RankProcess>& all() const { return ranks_; }
  const rlimit& files() const { return files_; }
  // What everything of this job on this machine is to carry.
  const process::JobMarks& marks() const { return marks_; }

  // Ends processes that have outlived the ranks: a moment to go by themselves, then SIGTERM, and
  // after `grace` SIGKILL. `step` waits for its owner's events, for so long at most; `hurry` says
  // that nobody wants to wait for good manners any more. What had to be ended, or "".
  std::string endLeftovers(Duration grace, const std::function<void(Duration)>& step,
                           const std::function<bool()>& hurry);

 private:
  void drain(RankProcess& rank);
  void replaceGuardian();
  pid_t guardianPid() const { return guardian_ ? guardian_->pid() : -1; }
  bool anythingLeft() const { return leftovers_.any(guardianPid()); }

  Listener& listener_;
  std::vector<RankProcess> ranks_;
  process::JobMarks marks_;
  std::vector<std::string> scratch_;  // what MPI puts here is ours to remove
  std::optional<Guardian> guardian_;
  int guardians_ = 0;  // that have been started
  process::Leftovers leftovers_{marks_};
  UniqueFd outputs_;  // epoll
  rlimit files_{};    // the limit we were started with
};

}  // namespace farandole::launch::local
