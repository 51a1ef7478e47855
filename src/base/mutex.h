// Mutex: a lock that takes one instruction each way, and no call, if no other thread holds it. It
// is for the short critical sections, some twenty, that every operation passes. To wait under it
// there is Condition. MutexLock and MutexUnlock hold a mutex, or release it, while they live.
//
// It is not recursive. Its word is free, held, or held while a thread sleeps (or has slept) for it.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.h"
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

// A lock that is never unlocked by hand is as cheap as std::lock_guard, because the flag is then a
// constant.
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

// Releases a mutex that is held, while it lives.
class SCOPED_CAPABILITY MutexUnlock {
 public:
  explicit MutexUnlock(Mutex& mutex) RELEASE(mutex) : mutex_(mutex) { mutex_.unlock(); }
  ~MutexUnlock() RELEASE() { mutex_.lock(); }  // to clang: what the constructor did is over
  MutexUnlock(const MutexUnlock&) = delete;
  MutexUnlock& operator=(const MutexUnlock&) = delete;

 private:
  Mutex& mutex_;
};

// Condition: waiting, with a Mutex held, for what another thread will change under that mutex.
//
//   while (!done_ && !deadline.passed()) changed_.wait(mutex_, deadline);
//
// All waiters of one use the same mutex.
class Condition {
 public:
  Condition() = default;
  Condition(const Condition&) = delete;
  Condition& operator=(const Condition&) = delete;

  // Gives the mutex back while it sleeps: until notified, until the deadline, for an hour at most,
  // or for no reason at all.
  void wait(Mutex& mutex, Deadline deadline) REQUIRES(mutex);
  // Called after a change that was made with the mutex held; the mutex may have been released
  // since. Costs nothing if no thread waits.
  void notifyAll() {
    if (sleepers_.load(std::memory_order_relaxed) > 0) wakeAll();
  }

 private:
  void wakeAll();

  // Changed with the mutex held: every thread that takes the mutex later sees the sleeper.
  std::atomic<std::uint32_t> sleepers_{0};
  std::atomic<std::uint32_t> calls_{0};  // what a sleeper sleeps on
};

}  // namespace farandole
