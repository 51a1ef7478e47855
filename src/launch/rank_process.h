// RankProcess: one rank as its launcher sees it: process, pipes, output, end. Main thread only.
#pragma once

#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <array>
#include <optional>
#include <string>

#include "base/fd.h"
#include "base/status.h"
#include "bootstrap/bootstrap.h"
#include "launch/job_plan.h"
#include "launch/rank_output.h"
#include "launch/signals.h"

namespace farandole {

class RankProcess {
 public:
  RankProcess(const RankPlan& plan, const OutputFormat& format)
      : plan_(plan), output_(plan.rank, format) {}

  // Also writes the output to folder/rank.N/stdout and stderr, which are created.
  Status copyOutputTo(const std::string& folder);
  Status start(const JobPlan& job, int stdinFd, const InheritedSignals& signals,
               const rlimit& files);

  int rank() const { return plan_.rank; }
  pid_t pid() const { return pid_; }
  // Started, and its end has not been seen yet: its pid and group are its own.
  bool running() const { return pid_ > 0 && !end_; }
  const std::optional<RankEnd>& end() const { return end_; }
  bool endedWell() const { return end_ && !end_->signalled && end_->code == 0; }

  // To its whole process group, if it runs. A stopped rank is woken up to act on it.
  void signal(int number);
  // Whether that signal has been sent to it by us.
  bool wasSent(int number) const { return sigismember(&sent_, number) == 1; }

  // -1 once the stream has ended.
  int pipe(Stream stream) const { return pipes_[static_cast<std::size_t>(stream)].get(); }
  // Takes what is there now, one large read at most, and appends finished lines to text. False:
  // nothing was there, or the stream has ended (finished then, and pipe() becomes -1).
  bool readSome(Stream stream, std::string& text);
  // Everything that is in the pipes now; bounded by their size.
  void drain(std::array<std::string, 2>& texts);
  void finishOutput(std::array<std::string, 2>& texts);

  // As waitid reported it. Drain before: the end carries the last lines.
  const RankEnd& setEnd(const siginfo_t& info);

 private:
  UniqueFd& pipeOf(Stream stream) { return pipes_[static_cast<std::size_t>(stream)]; }

  RankPlan plan_;
  RankOutput output_;
  pid_t pid_ = -1;
  std::array<UniqueFd, 2> pipes_;
  std::optional<RankEnd> end_;
  sigset_t sent_{};
};

}  // namespace farandole
