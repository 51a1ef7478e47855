// Which kernels run.

#include <atomic>
#include <iterator>

#include "base/reduce.h"
#include "base/reduce_kernels.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace farandole {
namespace {

bool always() { return true; }

#if defined(__x86_64__)
// __builtin_cpu_supports also asks whether the operating system saves the wide registers.
bool hasF16c() {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

bool hasAvx2() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx2") && hasF16c();
}

bool hasAvx512() {
  return hasAvx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}
#endif

struct Candidate {
  const Kernels& (*kernels)();
  bool (*available)();
};

// Best first.
constexpr Candidate kCandidates[] = {
#if defined(__x86_64__)
    {avx512Kernels, hasAvx512},
    {avx2Kernels, hasAvx2},
#endif
    {baselineKernels, always},
};

// They are constant tables that exist from the start, so relaxed order is enough.
std::atomic<const Kernels*> active{nullptr};

const Kernels& best() {
  for (const Candidate& candidate : kCandidates) {
    if (candidate.available()) return candidate.kernels();
  }
  return baselineKernels();
}

}  // namespace

const Kernels& activeKernels() {
  const Kernels* chosen = active.load(std::memory_order_relaxed);
  if (chosen != nullptr) return *chosen;
  const Kernels* const found = &best();
  // If another thread has called setKernels in between, its choice stays.
  return active.compare_exchange_strong(chosen, found, std::memory_order_relaxed) ? *found
                                                                                  : *chosen;
}

std::string_view kernels() { return activeKernels().name; }

bool setKernels(std::string_view name) {
  for (const Candidate& candidate : kCandidates) {
    if (candidate.available() && name == candidate.kernels().name) {
      active.store(&candidate.kernels(), std::memory_order_relaxed);
      return true;
    }
  }
  return false;
}

}  // namespace farandole
