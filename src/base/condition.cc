#include "base/condition.h"

#include "base/futex.h"

namespace farandole {

void Condition::wait(Mutex& mutex, Deadline deadline) {
  sleepers_.fetch_add(1, std::memory_order_relaxed);
  // Read with the mutex held: a call that comes after it is given back changes the word, and the
  // sleep ends or does not begin.
  const std::uint32_t calls = calls_.load(std::memory_order_relaxed);
  mutex.unlock();
  futexWait(calls_, calls, deadline, FutexScope::kPrivate);
  mutex.lock();
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
}

void Condition::wakeAll() {
  calls_.fetch_add(1, std::memory_order_relaxed);
  futexWakeAll(calls_, FutexScope::kPrivate);
}

}  // namespace farandole
