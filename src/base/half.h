// float16 and bfloat16 as bit patterns, one value at a time: exact conversions, rounded to nearest
// even, subnormals included; a NaN stays a (quiet) NaN. For tests, constants and conversions off
// the hot path; the reduction kernels have their own (base/reduce_vectors.inc), which give the same
// bits.
#pragma once

#include <bit>
#include <cstdint>

namespace farandole {

constexpr float halfToFloat(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000u) << 16;
  const std::uint32_t magnitude = half & 0x7fffu;
  if (magnitude >= 0x7c00u) {
    const std::uint32_t quiet = magnitude > 0x7c00u ? 0x400000u : 0u;
    return std::bit_cast<float>(sign | 0x7f800000u | quiet | (magnitude & 0x3ffu) << 13);
  }
  if (magnitude < 0x400u) {
    const float value = static_cast<float>(magnitude) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(value));
  }
  return std::bit_cast<float>(sign | ((magnitude << 13) + (112u << 23)));
}

constexpr std::uint16_t floatToHalf(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  const auto result = [sign](std::uint32_t rest) {
    return static_cast<std::uint16_t>(sign | rest);
  };
  if (magnitude > 0x7f800000u) return result(0x7e00u | ((magnitude >> 13) & 0x3ffu));
  if (magnitude >= 0x477ff000u) return result(0x7c00u);  // 65520 and more round to infinity
  if (magnitude >= 0x38800000u) {
    const std::uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
    return result((rounded >> 13) - (112u << 10));
  }
  // Below 2^-14 the result counts steps of 2^-24, and so does the last bit of a float near 0.5.
  const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
  return result(std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u);
}

constexpr float bfloatToFloat(std::uint16_t bfloat) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bfloat) << 16);
}

constexpr std::uint16_t floatToBfloat(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace farandole
