// InitLimit: MPI_Init waits for all processes of the job, for ever, and cannot be interrupted. One
// that has not returned by the deadline ends this process, with a line that says why; the starter
// then ends the others.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/clock.h"

namespace farandole::mpi {

class InitLimit {
 public:
  explicit InitLimit(Deadline deadline);
  ~InitLimit();
  InitLimit(const InitLimit&) = delete;
  InitLimit& operator=(const InitLimit&) = delete;

 private:
  void run(Deadline deadline);

  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace farandole::mpi
