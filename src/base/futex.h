// Waiting for another processor to change a word: relax() between two looks, futexes to sleep on a
// 32-bit word. Private futexes are for threads of one process, shared ones for several processes.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.h"

namespace farandole {

// What a loop that waits for another processor does between two looks.
inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

enum class FutexScope { kPrivate, kShared };
enum class FutexWait { kWoken, kTimeout, kInterrupted };

// Sleeps while word == expected, until woken or the deadline (at most an hour: a wait without end
// does not exist here). kWoken may be spurious. A signal handler always interrupts, also one
// installed with SA_RESTART.
FutexWait futexWait(std::atomic<std::uint32_t>& word, std::uint32_t expected, Deadline deadline,
                    FutexScope scope);
void futexWakeOne(std::atomic<std::uint32_t>& word, FutexScope scope);
void futexWakeAll(std::atomic<std::uint32_t>& word, FutexScope scope);

}  // namespace farandole
