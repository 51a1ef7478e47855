// Elements of every dtype as numbers: what the reference computes with, and how it is stored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "farandole.h"

namespace conformance {

inline std::size_t sizeOf(int dtype) {
  constexpr std::size_t kSizes[] = {1, 1, 2, 2, 4, 8, 2, 2, 4, 8, 1, 8, 16};
  return kSizes[dtype];
}

inline bool isComplex(int dtype) { return dtype >= FARANDOLE_COMPLEX64; }
inline bool isFloat(int dtype) { return dtype >= FARANDOLE_FLOAT16 && dtype <= FARANDOLE_FLOAT64; }

// Small whole numbers only, which every floating type holds exactly: float16 up to 2048, bfloat16
// up to 256.
inline std::uint16_t halfOfWhole(std::int64_t value) {
  if (value == 0) return 0;
  const std::uint16_t sign = value < 0 ? 0x8000 : 0;
  auto magnitude = static_cast<std::uint64_t>(value < 0 ? -value : value);
  int exponent = 0;
  while ((magnitude >> (exponent + 1)) != 0) ++exponent;
  const std::uint64_t fraction = exponent <= 10 ? (magnitude << (10 - exponent)) & 0x3ff
                                                : (magnitude >> (exponent - 10)) & 0x3ff;
  return static_cast<std::uint16_t>(sign | ((exponent + 15) << 10) | fraction);
}

inline void store(void* at, int dtype, std::int64_t value) {
  const auto put = [&](auto typed) { std::memcpy(at, &typed, sizeof typed); };
  switch (dtype) {
    case FARANDOLE_UINT8: return put(static_cast<std::uint8_t>(value));
    case FARANDOLE_INT8: return put(static_cast<std::int8_t>(value));
    case FARANDOLE_UINT16: return put(static_cast<std::uint16_t>(value));
    case FARANDOLE_INT16: return put(static_cast<std::int16_t>(value));
    case FARANDOLE_INT32: return put(static_cast<std::int32_t>(value));
    case FARANDOLE_INT64: return put(value);
    case FARANDOLE_FLOAT16: return put(halfOfWhole(value));
    case FARANDOLE_BFLOAT16: {
      const auto single = static_cast<float>(value);
      std::uint32_t bits = 0;
      std::memcpy(&bits, &single, sizeof bits);
      return put(static_cast<std::uint16_t>(bits >> 16));
    }
    case FARANDOLE_FLOAT32: return put(static_cast<float>(value));
    case FARANDOLE_FLOAT64: return put(static_cast<double>(value));
    case FARANDOLE_BOOL: return put(static_cast<std::uint8_t>(value != 0));
    case FARANDOLE_COMPLEX64: {
      const float parts[2] = {static_cast<float>(value), static_cast<float>(-value)};
      std::memcpy(at, parts, sizeof parts);
      return;
    }
    default: {
      const double parts[2] = {static_cast<double>(value), static_cast<double>(-value)};
      std::memcpy(at, parts, sizeof parts);
      return;
    }
  }
}

// What a rank brings for element i. Small, so that no sum or product of the tested rank counts is
// rounded.
inline std::int64_t valueOf(int rank, std::int64_t i, int op, int dtype) {
  const std::int64_t mixed = (i * 7 + rank * 13 + i / 5) % 11;
  if (dtype == FARANDOLE_BOOL) return mixed % 2;
  if (op == FARANDOLE_PRODUCT) return mixed % 2 + 1;
  return mixed % 5 + 1;
}

inline std::int64_t reduceTwo(std::int64_t a, std::int64_t b, int op, int dtype) {
  if (dtype == FARANDOLE_BOOL) {
    switch (op) {
      case FARANDOLE_SUM:
      case FARANDOLE_MAX:
      case FARANDOLE_BOR: return a | b;
      case FARANDOLE_BXOR: return a ^ b;
      default: return a & b;
    }
  }
  switch (op) {
    case FARANDOLE_SUM:
    case FARANDOLE_AVERAGE: return a + b;
    case FARANDOLE_MIN: return a < b ? a : b;
    case FARANDOLE_MAX: return a > b ? a : b;
    case FARANDOLE_PRODUCT: return a * b;
    case FARANDOLE_BAND: return a & b;
    case FARANDOLE_BOR: return a | b;
    default: return a ^ b;
  }
}

inline bool supported(int op, int dtype) {
  switch (op) {
    case FARANDOLE_SUM: return true;
    case FARANDOLE_MIN:
    case FARANDOLE_MAX:
    case FARANDOLE_PRODUCT: return !isComplex(dtype);
    case FARANDOLE_BAND:
    case FARANDOLE_BOR:
    case FARANDOLE_BXOR: return !isFloat(dtype) && !isComplex(dtype);
    default: return false;
  }
}

}  // namespace conformance
