#include "base/mutex.h"

#include "base/futex.h"

namespace farandole {
namespace {

// Critical sections are short: most end before a thread could fall asleep.
constexpr int kLooks = 50;

}  // namespace

// Not checked, because an exchange of the word is what takes the lock in the end.
void Mutex::lockWhenFree() NO_THREAD_SAFETY_ANALYSIS {
  for (int i = 0; i < kLooks; ++i) {
    relax();
    if (word_.load(std::memory_order_relaxed) == kFree && try_lock()) return;
  }
  // A thread that sleeps cannot know whether it is the last one, so after its sleep it leaves the
  // mark. At worst a thread is woken for nothing.
  while (word_.exchange(kAwaited, std::memory_order_acquire) != kFree) {
    futexWait(word_, kAwaited, Deadline::never(), FutexScope::kPrivate);
  }
}

void Mutex::wakeOne() { futexWakeOne(word_, FutexScope::kPrivate); }

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
