// Elementwise reduction of several arrays into one result that is written to several places: the
// arithmetic of every engine. Implementations for several instruction sets are chosen once at run
// time.
//
// Promises: sources are combined in the order given (((s0 op s1) op s2) …); float16 and bfloat16
// accumulate in float32 and are rounded once (to nearest even); no fused multiply-add; so the
// result depends on nothing but the inputs: not on the instruction set, the split of the work,
// alignment, or the kind of store. The caller holds an FpModeGuard. Thread-safe.
//
// NaN and infinity pass through sums and products; min and max are NaN if any source is (wherever
// it stands). Only which of several NaNs comes out is left open. Of equal values (-0, +0) min and
// max keep the first. bool: sum, max and bor are "or"; product, min and band are "and"; whatever is
// not 0 is true, and results are 0 or 1. Pointers need no alignment.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/types.h"

namespace farandole {

// result = (pre*s0 op pre*s1 …) * post / divisor. Integers: each scaled step in float64, truncated
// towards zero, everything accumulated in 64 bits (wrapping) whenever anything is scaled, the
// result stored modulo the type's width; a scaled value beyond 64 bits becomes the nearest that
// fits, NaN 0. float16/bfloat16: in float32. float32: in float32. bool is never scaled. Averages
// are sums with a divisor (a product with 1/n would truncate 49/49 to 0).
struct Scale {
  double pre = 1.0;
  double post = 1.0;
  std::int64_t divisor = 1;
  bool identity() const { return pre == 1.0 && post == 1.0 && divisor == 1; }
};

enum class Store {
  kCached,     // ordinary stores: the result is read again soon, by this core or a near one
  kStreaming,  // stores past the caches; ends with a store fence
};

// Every destination may be identical with a source (in place) but must not overlap one otherwise.
// Any number of sources >= 1 and destinations >= 1. op is never kAverage or kAdasum; supports(op,
// dtype) holds.
void reduce(std::span<void* const> destinations, std::span<const void* const> sources,
            std::int64_t count, DType dtype, ReduceOp op, const Scale& scale, Store store);

// memcpy, or the same with streaming stores (ends with a store fence).
void copy(void* destination, const void* source, std::size_t bytes, Store store);

// Fills count elements with op's neutral element (sum 0, product 1, min the largest value or +inf,
// …).
void fillNeutral(void* destination, std::int64_t count, DType dtype, ReduceOp op);

// Adasum's two halves. dot3 adds a·b, a·a and b·b of the elements, accumulated in float64 in blocks
// of kDotBlock elements and in a fixed order, to out[0..2] (splitting a call at a multiple of
// kDotBlock changes nothing); combine writes wa*a + wb*b (computed in float64, rounded once; a or b
// may equal result).
inline constexpr std::int64_t kDotBlock = 4096;
void dot3(const void* a, const void* b, std::int64_t count, DType dtype, double out[3]);
void combine(void* result, const void* a, double wa, const void* b, double wb, std::int64_t count,
             DType dtype);

// "baseline", "avx2", "avx512": what was chosen. setKernels is for tests and FARANDOLE_SIMD; false
// if this processor lacks it.
std::string_view kernels();
bool setKernels(std::string_view name);

// Default rounding, no flush-to-zero, no traps, for as long as it lives; restores what it found.
class FpModeGuard {
 public:
  FpModeGuard();
  ~FpModeGuard();
  FpModeGuard(const FpModeGuard&) = delete;
  FpModeGuard& operator=(const FpModeGuard&) = delete;

 private:
  std::uint64_t saved_;
};

}  // namespace farandole
