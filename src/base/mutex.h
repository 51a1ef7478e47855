// Mutex: a lock whose usual case, that nobody else holds it, is one instruction each way and no
// call. For short sections on the way of every operation, of which there are some twenty; to wait
// under it: base/condition.h. MutexLock and MutexUnlock hold one, or let go of it, while they live.
//
// Not recursive. The word: free; held; held, and somebody sleeps (or has slept) for it.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/thread_annotations.h"

namespace farandole {

class CAPABILITY("mutex") Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  // The names that the standard's lock holders call.
  void lock() ACQUIRE() {  // NOLINT(readability-identifier-naming)
    if (!try_lock()) lockWhenFree();
  }
  bool try_lock() TRY_ACQUIRE(true) {  // NOLINT(readability-identifier-naming)
    std::uint32_t expected = kFree;
    return word_.compare_exchange_strong(expected, kHeld, std::memory_order_acquire,
                                         std::memory_order_relaxed);
  }
  void unlock() RELEASE() {  // NOLINT(readability-identifier-naming)
    if (word_.exchange(kFree, std::memory_order_release) == kAwaited) wakeOne();
  }

 private:
  static constexpr std::uint32_t kFree = 0;
  static constexpr std::uint32_t kHeld = 1;
  static constexpr std::uint32_t kAwaited = 2;

  void lockWhenFree() ACQUIRE();
  void wakeOne();

  std::atomic<std::uint32_t> word_{kFree};
};

// One that is never unlocked by hand is as cheap as std::lock_guard: the flag is a constant then.
class SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() RELEASE() {
    if (held_) mutex_.unlock();
  }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void unlock() RELEASE() {
    held_ = false;
    mutex_.unlock();
  }
  void lock() ACQUIRE() {
    mutex_.lock();
    held_ = true;
  }

 private:
  Mutex& mutex_;
  bool held_ = true;
};

// Lets go of a mutex that is held, while it lives.
class SCOPED_CAPABILITY MutexUnlock {
 public:
  explicit MutexUnlock(Mutex& mutex) RELEASE(mutex) : mutex_(mutex) { mutex_.unlock(); }
  ~MutexUnlock() RELEASE() { mutex_.lock(); }  // to clang: what the constructor did is over
  MutexUnlock(const MutexUnlock&) = delete;
  MutexUnlock& operator=(const MutexUnlock&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace farandole
