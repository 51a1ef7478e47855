// base/half.h against arithmetic, and the kernels against base/half.h.
#include "base/half.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "unit/base/kernels_fixture.h"
#include "unit/base/reduce_reference.h"

namespace farandole {
namespace {

// Floats around every point where rounding changes: each short value, its halfway points, and
// their neighbours.
std::vector<float> interestingFloats(float (*decode)(std::uint16_t)) {
  std::vector<float> values;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = decode(static_cast<std::uint16_t>(bits));
    const float next = decode(static_cast<std::uint16_t>(bits + 1));
    const float between = value / 2 + next / 2;
    for (const float f : {value, between}) {
      values.push_back(f);
      values.push_back(std::nextafter(f, INFINITY));
      values.push_back(std::nextafter(f, -INFINITY));
    }
  }
  return values;
}

TEST(Half, EveryHalfIsExactAsFloat) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = halfToFloat(half);
    const double expected = reference::decode(half, reference::kHalf);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(value)) << bits;
      ASSERT_EQ(floatToHalf(value), half | 0x200) << bits;  // quiet, payload kept
    } else {
      ASSERT_EQ(value, expected) << bits;
      ASSERT_EQ(std::signbit(value), std::signbit(expected)) << bits;
      ASSERT_EQ(floatToHalf(value), half);
    }
  }
}

TEST(Half, RoundsToNearestEven) {
  for (const float value : interestingFloats(halfToFloat)) {
    if (std::isnan(value)) continue;
    ASSERT_EQ(floatToHalf(value), reference::encode(value, reference::kHalf)) << value;
  }
}

TEST(Half, LimitsOfTheRange) {
  EXPECT_EQ(floatToHalf(65504.0f), 0x7bff);
  EXPECT_EQ(floatToHalf(65519.99f), 0x7bff);
  EXPECT_EQ(floatToHalf(65520.0f), 0x7c00);
  EXPECT_EQ(floatToHalf(-INFINITY), 0xfc00);
  EXPECT_EQ(floatToHalf(0x1p-24f), 0x0001);
  EXPECT_EQ(floatToHalf(0x1p-25f), 0x0000);
  EXPECT_EQ(floatToHalf(-0x1.8p-25f), 0x8001);
  EXPECT_EQ(floatToHalf(-0.0f), 0x8000);
}

TEST(Bfloat, RoundsToNearestEven) {
  for (const float value : interestingFloats(bfloatToFloat)) {
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(bfloatToFloat(floatToBfloat(value))));
    } else {
      ASSERT_EQ(floatToBfloat(value), reference::encode(value, reference::kBfloat)) << value;
    }
  }
}

// The smallest payload must not be rounded away into infinity.
TEST(Bfloat, NanStaysNan) {
  EXPECT_EQ(floatToBfloat(std::bit_cast<float>(0x7f800001u)), 0x7fc0);
  EXPECT_EQ(floatToBfloat(std::bit_cast<float>(0xffffffffu)), 0xffff);
}

// Loads and stores of the kernels, over every short value: doubled and halved again, which is exact
// in float32, it must come out as it went in, NaNs included.
class ShortKernels : public testing::TestWithParam<DType> {};

TEST_P(ShortKernels, KeepEveryValue) {
  const KernelsGuard guard;
  const DType dtype = GetParam();
  const auto format = dtype == DType::kFloat16 ? reference::kHalf : reference::kBfloat;
  std::vector<std::uint16_t> all(0x10000);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
  const void* const from[] = {all.data(), all.data()};
  for (const std::string& isa : availableKernels()) {
    ASSERT_TRUE(setKernels(isa));
    std::vector<std::uint16_t> result(all.size());
    void* const to[] = {result.data()};
    reduce(to, from, 0x10000, dtype, ReduceOp::kMax, Scale{2.0, 0.5, 1}, Store::kCached);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const double exact = reference::decode(all[i], format);
      if (std::isnan(exact)) {
        ASSERT_EQ(result[i], all[i] | 1 << (format.fractionBits - 1))
            << isa;  // quiet, payload kept
      } else if (std::fabs(exact) < std::numeric_limits<float>::max() / 2) {
        ASSERT_EQ(result[i], all[i]) << isa;
      }
    }
  }
}

// Stores: sums of two shorts, rounded from float32, against the scalar conversion.
TEST_P(ShortKernels, RoundLikeTheScalarConversion) {
  const KernelsGuard guard;
  const DType dtype = GetParam();
  const bool half = dtype == DType::kFloat16;
  std::mt19937_64 random(7);
  std::vector<std::uint16_t> a(200000);
  std::vector<std::uint16_t> b(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    a[i] = static_cast<std::uint16_t>(random());
    b[i] = static_cast<std::uint16_t>(random());
  }
  const void* const from[] = {a.data(), b.data()};
  for (const std::string& isa : availableKernels()) {
    ASSERT_TRUE(setKernels(isa));
    std::vector<std::uint16_t> result(a.size());
    void* const to[] = {result.data()};
    reduce(to, from, static_cast<std::int64_t>(a.size()), dtype, ReduceOp::kProduct, Scale{},
           Store::kCached);
    for (std::size_t i = 0; i < a.size(); ++i) {
      const float exact =
          half ? halfToFloat(a[i]) * halfToFloat(b[i]) : bfloatToFloat(a[i]) * bfloatToFloat(b[i]);
      if (std::isnan(exact)) {
        ASSERT_TRUE(std::isnan(half ? halfToFloat(result[i]) : bfloatToFloat(result[i]))) << isa;
      } else {
        ASSERT_EQ(result[i], half ? floatToHalf(exact) : floatToBfloat(exact)) << isa;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, ShortKernels, testing::Values(DType::kFloat16, DType::kBfloat16),
                         [](const testing::TestParamInfo<DType>& tested) {
                           return std::string(name(tested.param));
                         });

}  // namespace
}  // namespace farandole
