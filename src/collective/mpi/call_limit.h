// CallLimit: some MPI calls wait for other processes, for ever, and cannot be interrupted. One that
// has not returned by the deadline ends this process, with a line that says why; the starter then
// ends the others.
#pragma once

#include <string>
#include <thread>

#include "base/clock.h"
#include "base/mutex.h"

namespace farandole::collective::mpi {

class CallLimit {
 public:
  // "farandole: rank 1: MPI_Init has not returned for 30 s: <advice>"
  CallLimit(Deadline deadline, std::string call, std::string advice);
  ~CallLimit();
  CallLimit(const CallLimit&) = delete;
  CallLimit& operator=(const CallLimit&) = delete;

 private:
  void run(Deadline deadline);

  const std::string call_;
  const std::string advice_;
  Mutex mutex_;
  Condition changed_;
  bool over_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

// "rank 1: ", as MPI's starter numbers this process; "": it does not.
std::string ownRank();

// Says it as a line and ends this process at once, whatever its other threads do.
[[noreturn]] void endProcess(const std::string& why, int code = 1);

}  // namespace farandole::collective::mpi
