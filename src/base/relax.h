// relax(): what a loop that waits for another processor does between two looks.
#pragma once

namespace farandole {

inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace farandole
