#include "base/mutex.h"

#include "base/futex.h"

namespace farandole {
namespace {

// Sections are short: most are over before a thread could fall asleep.
constexpr int kLooks = 50;

}  // namespace

// Not checked: what takes it in the end is an exchange of the word.
void Mutex::lockWhenFree() NO_THREAD_SAFETY_ANALYSIS {
  for (int i = 0; i < kLooks; ++i) {
    relax();
    if (word_.load(std::memory_order_relaxed) == kFree && try_lock()) return;
  }
  // Whoever sleeps cannot know whether it is the last one, so whoever has slept leaves the mark: at
  // worst somebody is woken for nothing.
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
