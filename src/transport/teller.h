// Teller: calls to the user of a mesh, in the order in which they were noted and one at a time,
// whichever threads note and tell.
#pragma once

#include <deque>
#include <functional>
#include <utility>

#include "base/mutex.h"

namespace farandole::transport {

class Teller {
 public:
  // Takes no other lock.
  void note(std::function<void()> call) {
    const MutexLock lock(mutex_);
    if (!closed_) calls_.push_back(std::move(call));
  }
  // Makes the calls that were noted; leaves them to another thread that is at it.
  void tell() {
    MutexLock lock(mutex_);
    if (std::exchange(telling_, true)) return;
    while (!calls_.empty()) {
      const std::function<void()> call = std::move(calls_.front());
      calls_.pop_front();
      lock.unlock();
      call();
      lock.lock();
    }
    telling_ = false;
  }
  void close() {
    std::deque<std::function<void()>> forgotten;
    const MutexLock lock(mutex_);
    closed_ = true;
    forgotten.swap(calls_);
  }

 private:
  Mutex mutex_;
  bool closed_ GUARDED_BY(mutex_) = false;
  bool telling_ GUARDED_BY(mutex_) = false;
  std::deque<std::function<void()>> calls_ GUARDED_BY(mutex_);
};

}  // namespace farandole::transport
