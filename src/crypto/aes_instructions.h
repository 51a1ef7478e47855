// Whether this processor encrypts with AES in hardware. If it does, AES-GCM is by far the cheapest
// authenticated cipher; otherwise ChaCha20-Poly1305 is.
#pragma once

#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace farandole::crypto {

inline bool hasAesInstructions() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("aes") && __builtin_cpu_supports("pclmul");
#elif defined(__aarch64__)
  return (::getauxval(AT_HWCAP) & HWCAP_AES) != 0;
#else
  return false;
#endif
}

}  // namespace farandole::crypto
