// AbortAfter: under MPI a job cannot go on without a rank, and a thread that sits inside MPI cannot
// be called back from there. So a rank that has been told of a loss has some time to end by itself
// (to say what happened, to save its work); then it ends the job through MPI.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "base/clock.h"
#include "collective/engine_plugin.h"

namespace farandole {

class AbortAfter {
 public:
  AbortAfter() = default;
  ~AbortAfter() { cancel(); }
  AbortAfter(const AbortAfter&) = delete;
  AbortAfter& operator=(const AbortAfter&) = delete;

  // why: names the lost rank. The first call counts; none after cancel does. Any thread.
  void start(Engine& engine, Duration grace, std::string why);
  void cancel();

 private:
  void run(Engine& engine, Duration grace, const std::string& why);

  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;   // guarded by mutex_
  std::thread thread_;  // guarded by mutex_
};

}  // namespace farandole
