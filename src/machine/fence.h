// A full memory fence that also compiles under ThreadSanitizer: it does not model fences, but what
// ours order is memory of several processes, which it cannot see anyway.
#pragma once

#include <atomic>

namespace farandole::machine {

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wtsan"
#endif
inline void fullFence() { std::atomic_thread_fence(std::memory_order_seq_cst); }
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

}  // namespace farandole::machine
