// Condition: waiting, with a Mutex held, for what another thread will change under that mutex.
//
//   while (!done_ && !deadline.passed()) changed_.wait(mutex_, deadline);
//
// All waiters of one use the same mutex.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.h"
#include "base/mutex.h"

namespace farandole {

class Condition {
 public:
  Condition() = default;
  Condition(const Condition&) = delete;
  Condition& operator=(const Condition&) = delete;

  // Gives the mutex back while it sleeps: until notified, until the deadline, for an hour at most,
  // or for no reason at all.
  void wait(Mutex& mutex, Deadline deadline) REQUIRES(mutex);
  // After a change that was made with the mutex held; with or without it now. Costs nothing when
  // nobody waits.
  void notifyAll() {
    if (sleepers_.load(std::memory_order_relaxed) > 0) wakeAll();
  }

 private:
  void wakeAll();

  // Changed with the mutex held. Whoever has had the mutex after a sleeper went to sleep sees it.
  std::atomic<std::uint32_t> sleepers_{0};
  std::atomic<std::uint32_t> calls_{0};  // what a sleeper sleeps on
};

}  // namespace farandole
