// AbortAfter: ends a job under MPI some time after a rank was lost. MPI cannot go on without a
// rank, and a thread that is inside MPI cannot be called back. So a rank that has learned of a loss
// has some time to end by itself (to say what happened, to save its work). After that it ends the
// job through MPI.
#pragma once

#include <string>
#include <thread>

#include "base/clock.h"
#include "base/mutex.h"
#include "collective/engine_plugin.h"

namespace farandole::runtime {

class AbortAfter {
 public:
  AbortAfter() = default;
  ~AbortAfter() { cancel(); }
  AbortAfter(const AbortAfter&) = delete;
  AbortAfter& operator=(const AbortAfter&) = delete;

  // why: names the lost rank. Only the first call counts, and none after cancel. Any thread may
  // call it.
  void start(collective::Engine& engine, Duration grace, std::string why);
  void cancel();

 private:
  void run(collective::Engine& engine, Duration grace, const std::string& why);

  Mutex mutex_;
  Condition changed_;
  bool over_ GUARDED_BY(mutex_) = false;
  std::thread thread_ GUARDED_BY(mutex_);
};

}  // namespace farandole::runtime
