#include "base/mutex.h"

#include "base/futex.h"
#include "base/relax.h"

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

}  // namespace farandole
