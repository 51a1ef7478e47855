// What base/reduce.h promises, one element at a time and with none of its code: the measure for the
// kernels' tests.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "base/reduce.h"

namespace farandole::reference {

// ---- float16 and bfloat16 by arithmetic: sign, exponent, a fraction rounded by nearbyint.

struct ShortFormat {
  int fractionBits;
  int minExponent;  // of the smallest normal number
  int maxExponent;
};
inline constexpr ShortFormat kHalf{10, -14, 15};
inline constexpr ShortFormat kBfloat{7, -126, 127};

inline double decode(std::uint16_t bits, ShortFormat f) {
  const int fraction = bits & ((1 << f.fractionBits) - 1);
  const int biased = (bits & 0x7fff) >> f.fractionBits;
  const int top = 0x7fff >> f.fractionBits;
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (biased == top) {
    return fraction != 0 ? std::numeric_limits<double>::quiet_NaN()
                         : sign * std::numeric_limits<double>::infinity();
  }
  if (biased == 0) return sign * std::ldexp(fraction, f.minExponent - f.fractionBits);
  return sign *
         std::ldexp((1 << f.fractionBits) + fraction, biased - 1 + f.minExponent - f.fractionBits);
}

// One rounding, to nearest even, from the exact value.
inline std::uint16_t encode(double value, ShortFormat f) {
  const int sign = std::signbit(value) ? 0x8000 : 0;
  const int infinity = (0x7fff >> f.fractionBits) << f.fractionBits;
  if (std::isnan(value)) return static_cast<std::uint16_t>(infinity | 1 << (f.fractionBits - 1));
  const double size = std::fabs(value);
  if (std::isinf(size)) return static_cast<std::uint16_t>(sign | infinity);
  if (size == 0) return static_cast<std::uint16_t>(sign);
  const int exponent = std::max(std::ilogb(size), f.minExponent);
  const double steps = std::nearbyint(std::ldexp(size, f.fractionBits - exponent));
  // steps reaches 2^(fractionBits+1) when rounding carries into the exponent: the sum below is
  // right for that too, and for subnormals, whose steps stay below 2^fractionBits.
  const long biased = static_cast<long>(exponent - f.minExponent) << f.fractionBits;
  const long bits = biased + static_cast<long>(steps);
  return static_cast<std::uint16_t>(sign | std::min(bits, static_cast<long>(infinity)));
}

template <typename T>
T loadAs(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// ---- One element

// volatile: every step is rounded to F, and nothing is fused.
template <typename F>
F reduceFloats(const std::vector<F>& values, ReduceOp op, const Scale& scale) {
  volatile F result = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    volatile F x = values[i];
    if (scale.pre != 1.0) x = x * static_cast<F>(scale.pre);
    if (i == 0) {
      result = x;
      continue;
    }
    switch (op) {
      case ReduceOp::kSum: result = result + x; break;
      case ReduceOp::kProduct: result = result * x; break;
      case ReduceOp::kMin:
        if (std::isnan(x) || (!std::isnan(result) && x < result)) result = x;
        break;
      case ReduceOp::kMax:
        if (std::isnan(x) || (!std::isnan(result) && x > result)) result = x;
        break;
      default: std::abort();
    }
  }
  if (scale.post != 1.0) result = result * static_cast<F>(scale.post);
  if (scale.divisor != 1) result = result / static_cast<F>(scale.divisor);
  return result;
}

inline std::int64_t truncated(double value) {
  if (std::isnan(value)) return 0;
  if (value >= 0x1p63) return std::numeric_limits<std::int64_t>::max();
  if (value < -0x1p63) return std::numeric_limits<std::int64_t>::min();
  return static_cast<std::int64_t>(value);
}

// In 64 bits throughout: without scaling this equals arithmetic in the type itself.
inline std::int64_t reduceIntegers(const std::vector<std::int64_t>& values, ReduceOp op,
                                   const Scale& scale) {
  std::int64_t result = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::int64_t x = values[i];
    if (scale.pre != 1.0) x = truncated(static_cast<double>(x) * scale.pre);
    if (i == 0) {
      result = x;
      continue;
    }
    const auto a = static_cast<std::uint64_t>(result);
    const auto b = static_cast<std::uint64_t>(x);
    switch (op) {
      case ReduceOp::kSum: result = static_cast<std::int64_t>(a + b); break;
      case ReduceOp::kProduct: result = static_cast<std::int64_t>(a * b); break;
      case ReduceOp::kMin: result = std::min(result, x); break;
      case ReduceOp::kMax: result = std::max(result, x); break;
      case ReduceOp::kBand: result &= x; break;
      case ReduceOp::kBor: result |= x; break;
      case ReduceOp::kBxor: result ^= x; break;
      default: std::abort();
    }
  }
  if (scale.post != 1.0 || scale.divisor != 1) {
    result =
        truncated(static_cast<double>(result) * scale.post / static_cast<double>(scale.divisor));
  }
  return result;
}

inline bool reduceBools(const std::vector<bool>& values, ReduceOp op) {
  bool result = values[0];
  for (std::size_t i = 1; i < values.size(); ++i) {
    switch (op) {
      case ReduceOp::kSum:
      case ReduceOp::kMax:
      case ReduceOp::kBor: result = result || values[i]; break;
      case ReduceOp::kProduct:
      case ReduceOp::kMin:
      case ReduceOp::kBand: result = result && values[i]; break;
      case ReduceOp::kBxor: result = result != values[i]; break;
      default: std::abort();
    }
  }
  return result;
}

// ---- Arrays

using Bytes = std::vector<std::byte>;

template <typename T>
void reduceIntegerArray(std::byte* out, const std::vector<Bytes>& sources, std::size_t count,
                        ReduceOp op, const Scale& scale) {
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<std::int64_t> values;
    for (const Bytes& s : sources) values.push_back(loadAs<T>(s.data() + i * sizeof(T)));
    const T result = static_cast<T>(reduceIntegers(values, op, scale));
    std::memcpy(out + i * sizeof(T), &result, sizeof(T));
  }
}

template <typename F>
void reduceFloatArray(std::byte* out, const std::vector<Bytes>& sources, std::size_t count,
                      ReduceOp op, const Scale& scale) {
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<F> values;
    for (const Bytes& s : sources) values.push_back(loadAs<F>(s.data() + i * sizeof(F)));
    const F result = reduceFloats(values, op, scale);
    std::memcpy(out + i * sizeof(F), &result, sizeof(F));
  }
}

inline void reduceShortArray(std::byte* out, const std::vector<Bytes>& sources, std::size_t count,
                             ReduceOp op, const Scale& scale, ShortFormat format) {
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<float> values;
    for (const Bytes& s : sources) {
      values.push_back(static_cast<float>(decode(loadAs<std::uint16_t>(s.data() + i * 2), format)));
    }
    const std::uint16_t result = encode(reduceFloats(values, op, scale), format);
    std::memcpy(out + i * 2, &result, 2);
  }
}

inline Bytes reduceArray(const std::vector<Bytes>& sources, std::size_t count, DType dtype,
                         ReduceOp op, const Scale& scale) {
  Bytes result(count * sizeOf(dtype));
  std::byte* const out = result.data();
  switch (dtype) {
    case DType::kUint8: reduceIntegerArray<std::uint8_t>(out, sources, count, op, scale); break;
    case DType::kInt8: reduceIntegerArray<std::int8_t>(out, sources, count, op, scale); break;
    case DType::kUint16: reduceIntegerArray<std::uint16_t>(out, sources, count, op, scale); break;
    case DType::kInt16: reduceIntegerArray<std::int16_t>(out, sources, count, op, scale); break;
    case DType::kInt32: reduceIntegerArray<std::int32_t>(out, sources, count, op, scale); break;
    case DType::kInt64: reduceIntegerArray<std::int64_t>(out, sources, count, op, scale); break;
    case DType::kFloat16: reduceShortArray(out, sources, count, op, scale, kHalf); break;
    case DType::kBfloat16: reduceShortArray(out, sources, count, op, scale, kBfloat); break;
    case DType::kFloat32: reduceFloatArray<float>(out, sources, count, op, scale); break;
    case DType::kFloat64: reduceFloatArray<double>(out, sources, count, op, scale); break;
    case DType::kComplex64: reduceFloatArray<float>(out, sources, 2 * count, op, scale); break;
    case DType::kComplex128: reduceFloatArray<double>(out, sources, 2 * count, op, scale); break;
    case DType::kBool:
      for (std::size_t i = 0; i < count; ++i) {
        std::vector<bool> values;
        for (const Bytes& s : sources) values.push_back(s[i] != std::byte{0});
        out[i] = std::byte{reduceBools(values, op)};
      }
      break;
  }
  return result;
}

// ---- Inputs and comparison

// Ordinary numbers, with infinities, NaNs, zeros of both signs, subnormals and huge ones among
// them.
template <typename F>
F randomFloat(std::mt19937_64& random) {
  using Limits = std::numeric_limits<F>;
  switch (random() % 64) {
    case 0: return Limits::quiet_NaN();
    case 1: return Limits::infinity();
    case 2: return -Limits::infinity();
    case 3: return F{0};
    case 4: return -F{0};
    case 5: return Limits::denorm_min() * static_cast<F>(random() % 1000);
    case 6: return Limits::max() / static_cast<F>(1 + random() % 3);
    default: return static_cast<F>(std::uniform_real_distribution<double>(-8, 8)(random));
  }
}

inline Bytes randomArray(std::size_t count, DType dtype, std::mt19937_64& random) {
  Bytes result(count * sizeOf(dtype));
  const auto fill = [&](auto next) {
    using T = decltype(next());
    for (std::size_t i = 0; i < result.size(); i += sizeof(T)) {
      const T value = next();
      std::memcpy(result.data() + i, &value, sizeof value);
    }
  };
  switch (dtype) {
    case DType::kFloat32:
    case DType::kComplex64: fill([&] { return randomFloat<float>(random); }); break;
    case DType::kFloat64:
    case DType::kComplex128: fill([&] { return randomFloat<double>(random); }); break;
    case DType::kFloat16:
    case DType::kBfloat16: {
      const ShortFormat format = dtype == DType::kFloat16 ? kHalf : kBfloat;
      fill([&]() -> std::uint16_t {  // half of them any bits at all
        if (random() % 2 == 0) return static_cast<std::uint16_t>(random());
        return encode(std::uniform_real_distribution<double>(-8, 8)(random), format);
      });
      break;
    }
    case DType::kBool: fill([&] { return static_cast<std::uint8_t>(random() % 4); }); break;
    default: fill([&] { return static_cast<std::uint8_t>(random()); }); break;
  }
  return result;
}

// Bit for bit, except that any NaN equals any other.
inline bool sameElement(const std::byte* a, const std::byte* b, DType dtype) {
  if (std::memcmp(a, b, sizeOf(dtype)) == 0) return true;
  switch (dtype) {
    case DType::kFloat16:
      return std::isnan(decode(loadAs<std::uint16_t>(a), kHalf)) &&
             std::isnan(decode(loadAs<std::uint16_t>(b), kHalf));
    case DType::kBfloat16:
      return std::isnan(decode(loadAs<std::uint16_t>(a), kBfloat)) &&
             std::isnan(decode(loadAs<std::uint16_t>(b), kBfloat));
    case DType::kFloat32: return std::isnan(loadAs<float>(a)) && std::isnan(loadAs<float>(b));
    case DType::kFloat64: return std::isnan(loadAs<double>(a)) && std::isnan(loadAs<double>(b));
    case DType::kComplex64:
      return sameElement(a, b, DType::kFloat32) && sameElement(a + 4, b + 4, DType::kFloat32);
    case DType::kComplex128:
      return sameElement(a, b, DType::kFloat64) && sameElement(a + 8, b + 8, DType::kFloat64);
    default: return false;
  }
}

// The index of the first element that differs, or count.
inline std::size_t firstDifference(const std::byte* a, const std::byte* b, std::size_t count,
                                   DType dtype) {
  for (std::size_t i = 0; i < count; ++i) {
    if (!sameElement(a + i * sizeOf(dtype), b + i * sizeOf(dtype), dtype)) return i;
  }
  return count;
}

}  // namespace farandole::reference
