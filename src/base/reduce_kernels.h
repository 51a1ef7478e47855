// What a translation unit of kernels for one instruction set offers: tables of plain functions.
//
// The same source (reduce_vectors.inc, reduce_kernels.inc) is compiled once for every instruction
// set. Those translation units may include nothing with inline functions or templates of external
// linkage (no standard containers, no base/types.h): the linker keeps one copy of such a function,
// and if it kept the AVX-512 one, older processors would run it. Hence plain numbers for DType and
// ReduceOp here.
#pragma once

#include <cstddef>
#include <cstdint>

namespace farandole {

inline constexpr std::size_t kKernelDTypes = 11;  // those of DType that are not complex
inline constexpr std::size_t kKernelOps = 8;      // those of ReduceOp but adasum; average is empty
inline constexpr std::size_t kKernelFloats = 4;   // float16, bfloat16, float32, float64
inline constexpr std::size_t kDotBlockElements = 4096;

// See Scale. Null where a kernel takes a pointer: nothing is scaled.
struct Scaling {
  double pre;
  double post;
  double divisor;
};

// Where to read: `count` arrays, each from `offset` bytes on.
struct SourceList {
  const void* const* pointers;
  std::size_t count;
  std::size_t offset;
};

// Reduces `elements` elements and writes them to destination, which is a source's own place
// (pointer + offset) or overlaps none.
using TileKernel = void (*)(void* destination, const SourceList& sources, std::size_t elements,
                            const Scaling* scaling);

// float32 sums straight from registers to `destinations` arrays (each from sources.offset bytes
// on). Returns how many elements it did: all but a remainder of less than 64. If streaming, all
// destinations + offset must be 64-byte aligned, and the caller fences.
using FanKernel = std::size_t (*)(void* const* destinations, std::size_t destinationCount,
                                  const SourceList& sources, std::size_t elements,
                                  const Scaling* scaling, bool streaming);

struct Kernels {
  const char* name;
  TileKernel plain[kKernelDTypes][kKernelOps];   // null where there is nothing to compute
  TileKernel scaled[kKernelDTypes][kKernelOps];  // also null for bool, which is never scaled
  FanKernel sumFloat32;
  // Stores past the caches; the caller fences.
  void (*streamCopy)(void* destination, const void* source, std::size_t bytes);
  void (*dot3[kKernelFloats])(const void* a, const void* b, std::size_t elements, double* out);
  void (*combine[kKernelFloats])(void* result, const void* a, double wa, const void* b, double wb,
                                 std::size_t elements);
};

const Kernels& baselineKernels();
#if defined(__x86_64__)
const Kernels& avx2Kernels();
const Kernels& avx512Kernels();
#endif

// The kernels that run: the best this processor has, unless setKernels (base/reduce.h) chose
// others. Any thread; one relaxed load after the first call.
const Kernels& activeKernels();

}  // namespace farandole
