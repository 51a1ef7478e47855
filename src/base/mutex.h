// Mutex: a lock whose usual case, that nobody else holds it, is one instruction each way and no
// call. For short sections on the way of every operation, of which there are some twenty; where a
// condition variable is needed, std::mutex.
//
// Not recursive. The word: free; held; held, and somebody sleeps (or has slept) for it.
#pragma once

#include <atomic>
#include <cstdint>

namespace farandole {

class Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  // The names that std::lock_guard and std::unique_lock call.
  void lock() {  // NOLINT(readability-identifier-naming)
    if (!try_lock()) lockWhenFree();
  }
  bool try_lock() {  // NOLINT(readability-identifier-naming)
    std::uint32_t expected = kFree;
    return word_.compare_exchange_strong(expected, kHeld, std::memory_order_acquire,
                                         std::memory_order_relaxed);
  }
  void unlock() {  // NOLINT(readability-identifier-naming)
    if (word_.exchange(kFree, std::memory_order_release) == kAwaited) wakeOne();
  }

 private:
  static constexpr std::uint32_t kFree = 0;
  static constexpr std::uint32_t kHeld = 1;
  static constexpr std::uint32_t kAwaited = 2;

  void lockWhenFree();
  void wakeOne();

  std::atomic<std::uint32_t> word_{kFree};
};

}  // namespace farandole
