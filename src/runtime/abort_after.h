// AbortAfter: under MPI a job cannot go on without a rank, and a thread that sits inside MPI cannot
// be called back from there. So a rank that has been told of a loss has some time to end by itself
// (to say what happened, to save its work); then it ends the job through MPI.
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

  // why: names the lost rank. The first call counts; none after cancel does. Any thread.
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
