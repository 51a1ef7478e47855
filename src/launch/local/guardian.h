// Guardian: a process that outlives the launcher and ends what is left of the job if the launcher
// vanishes without a word (kill -9, a crash, the out-of-memory killer).
//
// It is a child of the launcher's, so that the launcher sees its end and leaves no zombie, but in a
// session of its own, out of reach of the terminal's signals. It does nothing until the pipe to the
// launcher breaks: the kernel closes the launcher's end however the launcher ends.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/status.h"
#include "process/job_marks.h"

namespace farandole::launch::local {

// Owned by the launcher, main thread. Dropping it without dismiss() makes the guardian end the job.
class Guardian {
 public:
  // Forks. `marks` tell it whom to end. folders: removed with all that is in them once the job has
  // ended without the launcher, as far as they are this user's own (launch::mpi::removeScratch).
  static Result<Guardian> start(const process::JobMarks& marks,
                                const std::vector<std::string>& folders);

  Guardian(Guardian&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)), pipe_(std::move(other.pipe_)) {}
  Guardian& operator=(Guardian&& other) noexcept {
    pid_ = std::exchange(other.pid_, -1);
    pipe_ = std::move(other.pipe_);
    return *this;
  }

  pid_t pid() const { return pid_; }
  // Nothing is left to guard: ends it and reaps it.
  void dismiss();

 private:
  Guardian(pid_t pid, UniqueFd pipe) : pid_(pid), pipe_(std::move(pipe)) {}
  pid_t pid_;      // reaped by no other code without our owner's knowledge
  UniqueFd pipe_;  // closed on exec: no rank keeps it open
};

}  // namespace farandole::launch::local
