#include "collective/link/wire_format.h"

#include <cstring>

#include "base/half.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace farandole::collective::link {

std::string_view wireFormatName(WireFormat format) {
  switch (format) {
    case WireFormat::kNative: return "native";
    case WireFormat::kFloat16: return "fp16";
    case WireFormat::kBfloat16: return "bf16";
  }
  return "native";
}

std::optional<WireFormat> wireFormatFromName(std::string_view text) {
  for (const WireFormat format :
       {WireFormat::kNative, WireFormat::kFloat16, WireFormat::kBfloat16}) {
    if (text == wireFormatName(format)) return format;
  }
  return std::nullopt;
}

namespace {

// Elements of the user's pieces need no alignment.
float loadFloat(const float* from) {
  float value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

#if defined(__x86_64__)

bool hasF16c() {
  static const bool has = [] {
    unsigned a = 0;
    unsigned b = 0;
    unsigned c = 0;
    unsigned d = 0;
    return __builtin_cpu_supports("avx2") && __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C) != 0;
  }();
  return has;
}

__attribute__((target("avx2,f16c"))) std::int64_t narrowHalf(std::uint16_t* to, const float* from,
                                                             std::int64_t count) {
  std::int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m128i halves = _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), halves);
  }
  return i;
}

__attribute__((target("avx2,f16c"))) std::int64_t widenHalf(float* to, const std::uint16_t* from,
                                                            std::int64_t count) {
  std::int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(halves));
  }
  return i;
}

// As floatToBfloat, without branches.
__attribute__((target("avx2"))) std::int64_t narrowBfloat(std::uint16_t* to, const float* from,
                                                          std::int64_t count) {
  const __m256i magnitudeMask = _mm256_set1_epi32(0x7fffffff);
  const __m256i infinity = _mm256_set1_epi32(0x7f800000);
  const __m256i half = _mm256_set1_epi32(0x7fff);
  const __m256i one = _mm256_set1_epi32(1);
  const __m256i quiet = _mm256_set1_epi32(0x40);
  std::int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i));
    const __m256i high = _mm256_srli_epi32(bits, 16);
    const __m256i even = _mm256_and_si256(high, one);
    const __m256i rounded =
        _mm256_srli_epi32(_mm256_add_epi32(bits, _mm256_add_epi32(half, even)), 16);
    const __m256i nan = _mm256_cmpgt_epi32(_mm256_and_si256(bits, magnitudeMask), infinity);
    const __m256i words = _mm256_blendv_epi8(rounded, _mm256_or_si256(high, quiet), nan);
    const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(words, words), 0x08);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), _mm256_castsi256_si128(packed));
  }
  return i;
}

__attribute__((target("avx2"))) std::int64_t widenBfloat(float* to, const std::uint16_t* from,
                                                         std::int64_t count) {
  std::int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m128i words = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
    const __m256i bits = _mm256_slli_epi32(_mm256_cvtepu16_epi32(words), 16);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i), bits);
  }
  return i;
}

#endif

}  // namespace

DType wireType(WireFormat format, DType dtype) {
  if (dtype != DType::kFloat32 || format == WireFormat::kNative) return dtype;
  return format == WireFormat::kFloat16 ? DType::kFloat16 : DType::kBfloat16;
}

void narrow(std::uint16_t* to, const float* from, std::int64_t count, DType type) {
  std::int64_t i = 0;
#if defined(__x86_64__)
  if (hasF16c()) {
    i = type == DType::kFloat16 ? narrowHalf(to, from, count) : narrowBfloat(to, from, count);
  }
#endif
  for (; i < count; ++i) {
    const float value = loadFloat(from + i);
    to[i] = type == DType::kFloat16 ? floatToHalf(value) : floatToBfloat(value);
  }
}

void widen(float* to, const std::uint16_t* from, std::int64_t count, DType type) {
  std::int64_t i = 0;
#if defined(__x86_64__)
  if (hasF16c()) {
    i = type == DType::kFloat16 ? widenHalf(to, from, count) : widenBfloat(to, from, count);
  }
#endif
  for (; i < count; ++i) {
    const float value = type == DType::kFloat16 ? halfToFloat(from[i]) : bfloatToFloat(from[i]);
    std::memcpy(to + i, &value, sizeof value);
  }
}

}  // namespace farandole::collective::link
