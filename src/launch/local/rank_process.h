// RankProcess: one rank as a process of this machine: its pipes and its end. Main thread only.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <array>
#include <optional>
#include <string_view>

#include "base/fd.h"
#include "base/status.h"
#include "bootstrap/bootstrap.h"
#include "launch/output/output_writer.h"
#include "launch/plan/job_plan.h"
#include "process/job_marks.h"
#include "process/signals.h"

namespace farandole::launch::local {

class RankProcess {
 public:
  explicit RankProcess(const launch::plan::RankPlan& plan) : plan_(plan) {}

  Status start(const launch::plan::JobPlan& job, int stdinFd,
               const process::InheritedSignals& signals, const rlimit& files,
               const process::JobMarks& marks);

  int rank() const { return plan_.rank; }
  pid_t pid() const { return pid_; }
  // Started, and its end has not been seen yet: its pid and group are its own.
  bool running() const { return pid_ > 0 && !end_; }

  // To its whole process group, if it runs. A stopped rank is woken up to act on it.
  void signal(int number);
  // Whether that signal has been sent to it by us.
  bool wasSent(int number) const { return sigismember(&sent_, number) == 1; }

  // -1 once the stream has ended.
  int pipe(launch::output::Stream stream) const {
    return pipes_[static_cast<std::size_t>(stream)].get();
  }
  // Takes what is there now, one large read at most; valid until the next call for any rank. Empty:
  // nothing was there, or the stream has ended (pipe() is -1 then).
  std::string_view readSome(launch::output::Stream stream);

  // Records the end as waitid reported it, without the last lines.
  const bootstrap::RankEnd& setEnd(const siginfo_t& info);

 private:
  launch::plan::RankPlan plan_;
  pid_t pid_ = -1;
  std::array<UniqueFd, 2> pipes_;
  std::optional<bootstrap::RankEnd> end_;
  sigset_t sent_{};
};

}  // namespace farandole::launch::local
