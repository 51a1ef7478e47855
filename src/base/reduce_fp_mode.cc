// FpModeGuard: one register write when the thread's mode is unusual, one read otherwise.
#include "base/reduce.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#elif !defined(__aarch64__)
#include <cfenv>
#endif

namespace farandole {
namespace {

#if defined(__x86_64__)

constexpr std::uint64_t kDefault = 0x1f80;  // all exceptions masked, to nearest, no FTZ or DAZ
constexpr std::uint64_t kFlags = 0x3f;      // which exceptions happened: not a mode

std::uint64_t readMode() { return _mm_getcsr(); }
void writeMode(std::uint64_t mode) { _mm_setcsr(static_cast<unsigned>(mode)); }

#elif defined(__aarch64__)

constexpr std::uint64_t kDefault = 0;
constexpr std::uint64_t kFlags = 0;  // they live in another register

std::uint64_t readMode() {
  std::uint64_t mode;
  asm volatile("mrs %0, fpcr" : "=r"(mode));
  return mode;
}
void writeMode(std::uint64_t mode) { asm volatile("msr fpcr, %0" : : "r"(mode)); }

#else

constexpr std::uint64_t kDefault = FE_TONEAREST;
constexpr std::uint64_t kFlags = 0;

std::uint64_t readMode() { return static_cast<std::uint64_t>(std::fegetround()); }
void writeMode(std::uint64_t mode) { std::fesetround(static_cast<int>(mode)); }

#endif

bool isDefault(std::uint64_t mode) { return (mode & ~kFlags) == kDefault; }

}  // namespace

FpModeGuard::FpModeGuard() : saved_(readMode()) {
  if (!isDefault(saved_)) writeMode(kDefault | (saved_ & kFlags));
}

FpModeGuard::~FpModeGuard() {
  if (!isDefault(saved_)) writeMode(saved_);
}

}  // namespace farandole
