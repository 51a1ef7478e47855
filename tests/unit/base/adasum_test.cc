// dot3 and combine: right within what float64 allows, identical with every set of kernels, and
// rounded once.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/reduce.h"
#include "unit/base/kernels_fixture.h"
#include "unit/base/reduce_reference.h"

namespace farandole {
namespace {

using reference::Bytes;

double element(const Bytes& array, std::size_t i, DType dtype) {
  const std::byte* at = array.data() + i * sizeOf(dtype);
  switch (dtype) {
    case DType::kFloat16:
      return reference::decode(reference::loadAs<std::uint16_t>(at), reference::kHalf);
    case DType::kBfloat16:
      return reference::decode(reference::loadAs<std::uint16_t>(at), reference::kBfloat);
    case DType::kFloat32: return reference::loadAs<float>(at);
    default: return reference::loadAs<double>(at);
  }
}

Bytes finiteArray(std::size_t count, DType dtype, std::mt19937_64& random) {
  Bytes result(count * sizeOf(dtype));
  for (std::size_t i = 0; i < count; ++i) {
    const double value = std::uniform_real_distribution<double>(-4, 4)(random);
    std::byte* to = result.data() + i * sizeOf(dtype);
    if (dtype == DType::kFloat32) {
      const auto narrow = static_cast<float>(value);
      std::memcpy(to, &narrow, sizeof narrow);
    } else if (dtype == DType::kFloat64) {
      std::memcpy(to, &value, sizeof value);
    } else {
      const auto bits = reference::encode(
          value, dtype == DType::kFloat16 ? reference::kHalf : reference::kBfloat);
      std::memcpy(to, &bits, sizeof bits);
    }
  }
  return result;
}

class AdasumKernels : public testing::TestWithParam<DType> {
 protected:
  KernelsGuard guard_;
  FpModeGuard mode_;
};

TEST_P(AdasumKernels, DotIsRightAndTheSameEverywhere) {
  const DType dtype = GetParam();
  std::mt19937_64 random(3);
  for (const std::size_t count : {0, 1, 2, 7, 15, 16, 17, 31, 33, 100, 4096, 4097, 10000}) {
    const Bytes a = finiteArray(count, dtype, random);
    const Bytes b = finiteArray(count, dtype, random);
    long double exact[3] = {1, 2, 3};
    long double size = 6;
    for (std::size_t i = 0; i < count; ++i) {
      const long double x = element(a, i, dtype);
      const long double y = element(b, i, dtype);
      exact[0] += x * y;
      exact[1] += x * x;
      exact[2] += y * y;
      size += x * x + y * y;
    }
    double first[3] = {};
    for (const std::string& isa : availableKernels()) {
      ASSERT_TRUE(setKernels(isa));
      double out[3] = {1, 2, 3};  // dot3 adds
      dot3(a.data(), b.data(), static_cast<std::int64_t>(count), dtype, out);
      for (int k = 0; k < 3; ++k) {
        EXPECT_NEAR(out[k], static_cast<double>(exact[k]), static_cast<double>(size) * 1e-13)
            << isa << ", " << count;
      }
      if (isa == "baseline") std::copy(out, out + 3, first);
      EXPECT_EQ(std::memcmp(out, first, sizeof out), 0) << isa << ", " << count;
    }
  }
}

TEST_P(AdasumKernels, DotMayBeSplitAtBlocks) {
  const DType dtype = GetParam();
  std::mt19937_64 random(4);
  const std::int64_t count = 3 * kDotBlock + 100;
  const Bytes a = finiteArray(static_cast<std::size_t>(count), dtype, random);
  const Bytes b = finiteArray(static_cast<std::size_t>(count), dtype, random);
  const std::size_t cut = 2 * static_cast<std::size_t>(kDotBlock) * sizeOf(dtype);
  for (const std::string& isa : availableKernels()) {
    ASSERT_TRUE(setKernels(isa));
    double whole[3] = {};
    double parts[3] = {};
    dot3(a.data(), b.data(), count, dtype, whole);
    dot3(a.data(), b.data(), 2 * kDotBlock, dtype, parts);
    dot3(a.data() + cut, b.data() + cut, count - 2 * kDotBlock, dtype, parts);
    EXPECT_EQ(std::memcmp(whole, parts, sizeof whole), 0) << isa;
  }
}

// The exact value of wa*a + wb*b in float64, rounded to the type in one step.
void expectCombined(const Bytes& result, const Bytes& a, double wa, const Bytes& b, double wb,
                    std::size_t count, DType dtype, const std::string& isa) {
  for (std::size_t i = 0; i < count; ++i) {
    volatile double x = element(a, i, dtype) * wa;
    volatile double y = element(b, i, dtype) * wb;
    const double sum = x + y;
    Bytes expected(sizeOf(dtype));
    if (dtype == DType::kFloat64) {
      std::memcpy(expected.data(), &sum, sizeof sum);
    } else if (dtype == DType::kFloat32) {
      const auto narrow = static_cast<float>(sum);
      std::memcpy(expected.data(), &narrow, sizeof narrow);
    } else {
      const auto bits =
          reference::encode(sum, dtype == DType::kFloat16 ? reference::kHalf : reference::kBfloat);
      std::memcpy(expected.data(), &bits, sizeof bits);
    }
    ASSERT_TRUE(reference::sameElement(result.data() + i * sizeOf(dtype), expected.data(), dtype))
        << isa << ": element " << i << " of " << count << ", exact " << sum;
  }
}

TEST_P(AdasumKernels, CombineRoundsOnce) {
  const DType dtype = GetParam();
  std::mt19937_64 random(5);
  for (const std::size_t count : {1, 3, 8, 16, 31, 33, 5000}) {
    const Bytes a = reference::randomArray(count, dtype, random);
    const Bytes b = reference::randomArray(count, dtype, random);
    for (const auto& [wa, wb] : {std::pair{1.0, 1.0},
                                 {0.75, 0x1p-30},
                                 {1.0, -1e-12},
                                 {1e300, 0.0},
                                 {0x1p-13, 0x1.8p-60},
                                 {1e-45, 1e-46}}) {
      for (const std::string& isa : availableKernels()) {
        ASSERT_TRUE(setKernels(isa));
        Bytes result(count * sizeOf(dtype));
        combine(result.data(), a.data(), wa, b.data(), wb, static_cast<std::int64_t>(count), dtype);
        expectCombined(result, a, wa, b, wb, count, dtype, isa);
        if (HasFatalFailure()) return;
        Bytes inPlace = a;
        combine(inPlace.data(), inPlace.data(), wa, b.data(), wb, static_cast<std::int64_t>(count),
                dtype);
        ASSERT_EQ(std::memcmp(inPlace.data(), result.data(), result.size()), 0) << isa;
      }
    }
  }
}

// 1 + 2^-11 lies halfway between two halves, and a little more must round up: through float32,
// rounded to nearest, the little more would be lost.
TEST(Combine, DoesNotRoundTwice) {
  const KernelsGuard guard;
  const std::uint16_t one = reference::encode(1, reference::kHalf);
  for (const std::string& isa : availableKernels()) {
    ASSERT_TRUE(setKernels(isa));
    std::uint16_t result = 0;
    combine(&result, &one, 1.0 + 0x1p-11, &one, 0x1p-40, 1, DType::kFloat16);
    EXPECT_EQ(result, one + 1) << isa;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, AdasumKernels,
                         testing::Values(DType::kFloat16, DType::kBfloat16, DType::kFloat32,
                                         DType::kFloat64),
                         [](const testing::TestParamInfo<DType>& tested) {
                           return std::string(name(tested.param));
                         });

}  // namespace
}  // namespace farandole
