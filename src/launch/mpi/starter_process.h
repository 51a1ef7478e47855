// StarterProcess: the MPI's own starter while a job runs. It is a child of the launcher; what it
// prints is kept and only shown if it fails. Main thread only.
#pragma once

#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"
#include "launch/mpi/starter.h"
#include "launch/plan/job_plan.h"
#include "launch/ssh/ssh_command.h"
#include "process/job_marks.h"
#include "process/signals.h"

namespace farandole::launch::mpi {

class StarterProcess {
 public:
  StarterProcess(Starter starter, const launch::plan::JobPlan& plan,
                 const launch::ssh::SshOptions& ssh, const std::string& treeId,
                 Duration startLimit);

  Status start(const process::InheritedSignals& signals, const rlimit& files,
               const process::JobMarks& marks);

  // Readable when it has printed something; -1: nothing more comes.
  int fd() const { return output_.get(); }
  void read();

  // True if it was this child.
  bool childEnded(pid_t pid, const siginfo_t& info);
  bool running() const { return pid_ > 0; }
  void signal(int number);

  // Whether another process has killed it.
  bool wasKilled() const { return ended_ && !signalled_ && WIFSIGNALED(waitStatus_); }

  // What to say if it has ended although ranks run, once that is no mere coincidence: a rank's end
  // ends it too, and is reported by others.
  std::optional<std::string> failure(TimePoint now) const;
  std::string describe() const;

 private:
  const Starter starter_;
  const launch::ssh::SshOptions ssh_;
  UniqueFd scriptFd_;  // an unnamed file: nothing is left behind whatever happens
  UniqueFd output_;
  std::string text_;  // the last part of what it printed
  pid_t pid_ = -1;
  bool ended_ = false;
  bool signalled_ = false;  // by us
  int waitStatus_ = 0;
  TimePoint endedAt_;
  const launch::plan::JobPlan& plan_;
  const std::vector<std::string> lender_;
};

}  // namespace farandole::launch::mpi
