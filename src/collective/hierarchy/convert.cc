#include "collective/hierarchy/convert.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/half.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace farandole::collective::hierarchy {
namespace {

// Elements converted at once: in registers and L1, and a count the compiler knows.
constexpr std::size_t kBlock = 64;
// Elements scaled and narrowed at once.
constexpr std::int64_t kTile = 2048;

// Whole blocks through buffers, so that neither alignment nor a narrower result in the place of its
// source matters.
template <typename From, typename To, typename Convert>
void convertAll(void* to, const void* from, std::int64_t count, Convert convert) {
  auto* out = static_cast<std::byte*>(to);
  const auto* in = static_cast<const std::byte*>(from);
  alignas(64) From source[kBlock] = {};
  alignas(64) To result[kBlock];
  for (auto left = static_cast<std::size_t>(count); left > 0;) {
    const std::size_t now = std::min(left, kBlock);
    std::memcpy(source, in, now * sizeof(From));
    convert(source, result);
    std::memcpy(out, result, now * sizeof(To));
    in += now * sizeof(From);
    out += now * sizeof(To);
    left -= now;
  }
}

void halvesToFloats(const std::uint16_t* from, float* to) {
  for (std::size_t i = 0; i < kBlock; ++i) to[i] = halfToFloat(from[i]);
}
void floatsToHalves(const float* from, std::uint16_t* to) {
  for (std::size_t i = 0; i < kBlock; ++i) to[i] = floatToHalf(from[i]);
}

// floatToBfloat without branches, so that the compiler makes vectors of it.
void floatsToBfloats(const float* from, std::uint16_t* to) {
  for (std::size_t i = 0; i < kBlock; ++i) {
    const auto bits = std::bit_cast<std::int32_t>(from[i]);
    const std::int32_t rounded = static_cast<std::int32_t>(static_cast<std::uint32_t>(bits) +
                                                           0x7fffU + ((bits >> 16) & 1)) >>
                                 16;
    const std::int32_t quiet = (bits >> 16) | 0x40;
    const bool isNan = (bits & 0x7fffffff) > 0x7f800000;
    to[i] = static_cast<std::uint16_t>(isNan ? quiet : rounded);
  }
}

using ToFloats = void (*)(const std::uint16_t*, float*);
using ToHalves = void (*)(const float*, std::uint16_t*);

#if defined(__x86_64__)
// The same bits as above, eight at a time.
__attribute__((target("avx,f16c"))) void halvesToFloatsF16c(const std::uint16_t* from, float* to) {
  for (std::size_t i = 0; i < kBlock; i += 8) {
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(halves));
  }
}
__attribute__((target("avx,f16c"))) void floatsToHalvesF16c(const float* from, std::uint16_t* to) {
  for (std::size_t i = 0; i < kBlock; i += 8) {
    const __m256 floats = _mm256_loadu_ps(from + i);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm256_cvtps_ph(floats, _MM_FROUND_TO_NEAREST_INT));
  }
}
// The kernels above the baseline are chosen only where there is F16C.
bool hasF16c() { return kernels() != "baseline"; }
ToFloats toFloats() { return hasF16c() ? halvesToFloatsF16c : halvesToFloats; }
ToHalves toHalves() { return hasF16c() ? floatsToHalvesF16c : floatsToHalves; }
#else
ToFloats toFloats() { return halvesToFloats; }
ToHalves toHalves() { return floatsToHalves; }
#endif

template <typename T>
void widenIntegers(void* to, const void* from, std::int64_t count) {
  convertAll<T, std::int64_t>(to, from, count, [](const T* source, std::int64_t* result) {
    for (std::size_t i = 0; i < kBlock; ++i) result[i] = source[i];
  });
}

// Modulo the width.
template <typename T>
void narrowIntegers(void* to, const void* from, std::int64_t count) {
  convertAll<std::uint64_t, T>(to, from, count, [](const std::uint64_t* source, T* result) {
    for (std::size_t i = 0; i < kBlock; ++i) result[i] = static_cast<T>(source[i]);
  });
}

DType insideType(DType type, ReduceOp op, const Scale& scale) {
  const bool order = op == ReduceOp::kMin || op == ReduceOp::kMax;
  switch (type) {
    case DType::kFloat16:
    case DType::kBfloat16: return order && scale.identity() ? type : DType::kFloat32;
    case DType::kUint8:
    case DType::kInt8:
    case DType::kUint16:
    case DType::kInt16:
    case DType::kInt32: return scale.identity() ? type : DType::kInt64;
    default: return type;
  }
}

Scale withDivisor(Scale scale, ReduceOp op, int members) {
  if (op == ReduceOp::kAverage) scale.divisor *= members;
  return scale;
}

}  // namespace

Work::Work(DType type, ReduceOp operation, const Scale& scale, int members)
    : outside(type),
      inside(insideType(type, operation, withDivisor(scale, operation, members))),
      op(operation == ReduceOp::kAverage ? ReduceOp::kSum : operation),
      before{scale.pre, 1.0, 1},
      after{1.0, scale.post, withDivisor(scale, operation, members).divisor} {}

void Work::enter(void* to, const void* from, std::int64_t count) const {
  if (!converts()) {
    return copy(to, from, static_cast<std::size_t>(count) * sizeOf(inside), Store::kCached);
  }
  const FpModeGuard guard;
  switch (outside) {
    case DType::kFloat16: return convertAll<std::uint16_t, float>(to, from, count, toFloats());
    case DType::kBfloat16:
      return convertAll<std::uint16_t, float>(to, from, count,
                                              [](const std::uint16_t* source, float* result) {
                                                for (std::size_t i = 0; i < kBlock; ++i) {
                                                  result[i] = bfloatToFloat(source[i]);
                                                }
                                              });
    case DType::kUint8: return widenIntegers<std::uint8_t>(to, from, count);
    case DType::kInt8: return widenIntegers<std::int8_t>(to, from, count);
    case DType::kUint16: return widenIntegers<std::uint16_t>(to, from, count);
    case DType::kInt16: return widenIntegers<std::int16_t>(to, from, count);
    default: return widenIntegers<std::int32_t>(to, from, count);
  }
}

void Work::leave(void* elements, std::int64_t count) const {
  if (after.identity() && !converts()) return;
  const FpModeGuard guard;
  auto* const bytes = static_cast<std::byte*>(elements);
  // Tile by tile, each scaled and narrowed while it is in L1; the narrower result lies before
  // everything that is still to be read.
  for (std::int64_t at = 0; at < count; at += kTile) {
    const std::int64_t now = std::min(kTile, count - at);
    void* const wide = bytes + static_cast<std::size_t>(at) * sizeOf(inside);
    if (!after.identity()) {
      const void* const source = wide;
      reduce(std::span(&wide, 1), std::span(&source, 1), now, inside, op, after, Store::kCached);
    }
    if (converts()) narrow(bytes + static_cast<std::size_t>(at) * sizeOf(outside), wide, now);
  }
}

void Work::narrow(void* to, const void* from, std::int64_t count) const {
  switch (outside) {
    case DType::kFloat16: return convertAll<float, std::uint16_t>(to, from, count, toHalves());
    case DType::kBfloat16:
      return convertAll<float, std::uint16_t>(to, from, count, floatsToBfloats);
    case DType::kUint8:
    case DType::kInt8: return narrowIntegers<std::uint8_t>(to, from, count);
    case DType::kUint16:
    case DType::kInt16: return narrowIntegers<std::uint16_t>(to, from, count);
    default: return narrowIntegers<std::uint32_t>(to, from, count);
  }
}

}  // namespace farandole::collective::hierarchy
