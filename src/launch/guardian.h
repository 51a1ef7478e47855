// Guardian: a process that outlives the launcher and ends what is left of the job if the launcher
// vanishes without a word (kill -9, a crash, the out-of-memory killer).
//
// It is no child of the launcher's and in a session of its own, so that neither the terminal's
// signals nor the launcher's death reach it. It does nothing until the pipe to the launcher breaks:
// the kernel closes the launcher's end however the launcher ends.
#pragma once

#include <string>
#include <vector>

#include "base/fd.h"
#include "base/status.h"

namespace farandole {

// Owned by the launcher. Dropping it without dismiss() makes the guardian end the job.
class Guardian {
 public:
  // Forks: call it before any thread is started. The job's processes are known by their mark.
  // folders: removed with all that is in them once the job has ended without the launcher, as far
  // as they are this user's own (mpi::removeScratch).
  static Result<Guardian> start(const std::string& job,
                                const std::vector<std::string>& folders = {});

  // Nothing is left to guard.
  void dismiss();

 private:
  explicit Guardian(UniqueFd pipe) : pipe_(std::move(pipe)) {}
  UniqueFd pipe_;  // closed on exec: no rank keeps it open
};

}  // namespace farandole
