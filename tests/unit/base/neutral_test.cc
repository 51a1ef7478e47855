// fillNeutral: reducing anything with the neutral element gives that thing again.
#include <gtest/gtest.h>

#include "base/reduce.h"
#include "unit/base/reduce_reference.h"

namespace farandole {
namespace {

// -0 + 0 is +0: equal, though not the same bits.
template <typename Bits>
void clearZeros(reference::Bytes& array) {
  constexpr Bits kNegativeZero = Bits{1} << (8 * sizeof(Bits) - 1);
  for (std::size_t i = 0; i < array.size(); i += sizeof(Bits)) {
    if (reference::loadAs<Bits>(array.data() + i) == kNegativeZero) {
      std::memset(array.data() + i, 0, sizeof(Bits));
    }
  }
}
void clearNegativeZeros(reference::Bytes& array, DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
    case DType::kBfloat16: return clearZeros<std::uint16_t>(array);
    case DType::kFloat32:
    case DType::kComplex64: return clearZeros<std::uint32_t>(array);
    case DType::kFloat64:
    case DType::kComplex128: return clearZeros<std::uint64_t>(array);
    default: return;
  }
}

TEST(FillNeutral, ChangesNothingInAnyReduction) {
  constexpr std::size_t kCount = 100;
  for (int d = 0; d < kDTypeCount; ++d) {
    for (int o = 0; o < kReduceOpCount; ++o) {
      const auto dtype = static_cast<DType>(d);
      const auto op = static_cast<ReduceOp>(o);
      if (op == ReduceOp::kAverage || op == ReduceOp::kAdasum || !supports(op, dtype)) continue;
      std::mt19937_64 random(9);
      const reference::Bytes values = reference::randomArray(kCount, dtype, random);
      // One byte off alignment, with a guard on either side.
      reference::Bytes neutral(kCount * sizeOf(dtype) + 2, std::byte{0x5a});
      fillNeutral(neutral.data() + 1, kCount, dtype, op);
      EXPECT_EQ(neutral.front(), std::byte{0x5a});
      EXPECT_EQ(neutral.back(), std::byte{0x5a});

      reference::Bytes result(values.size());
      reference::Bytes alone(values.size());
      void* const to[] = {result.data()};
      void* const toAlone[] = {alone.data()};
      const void* const from[] = {values.data(), neutral.data() + 1};
      reduce(to, from, kCount, dtype, op, Scale{}, Store::kCached);
      reduce(toAlone, std::span(from, 1), kCount, dtype, op, Scale{}, Store::kCached);
      if (op == ReduceOp::kSum) {
        clearNegativeZeros(result, dtype);
        clearNegativeZeros(alone, dtype);
      }
      EXPECT_EQ(reference::firstDifference(result.data(), alone.data(), kCount, dtype), kCount)
          << name(dtype) << " " << name(op);
    }
  }
}

TEST(FillNeutral, Values) {
  float f = 5;
  fillNeutral(&f, 1, DType::kFloat32, ReduceOp::kSum);
  EXPECT_EQ(f, 0.0f);
  fillNeutral(&f, 1, DType::kFloat32, ReduceOp::kMin);
  EXPECT_EQ(f, std::numeric_limits<float>::infinity());
  std::int8_t i = 5;
  fillNeutral(&i, 1, DType::kInt8, ReduceOp::kMax);
  EXPECT_EQ(i, -128);
  fillNeutral(&i, 1, DType::kInt8, ReduceOp::kBand);
  EXPECT_EQ(i, -1);
  std::uint16_t half = 5;
  fillNeutral(&half, 1, DType::kFloat16, ReduceOp::kProduct);
  EXPECT_EQ(reference::decode(half, reference::kHalf), 1.0);
  fillNeutral(&half, 1, DType::kBfloat16, ReduceOp::kMax);
  EXPECT_EQ(reference::decode(half, reference::kBfloat), -std::numeric_limits<double>::infinity());
}

TEST(FillNeutral, NothingForNoElements) {
  std::uint8_t untouched = 5;
  fillNeutral(&untouched, 0, DType::kUint8, ReduceOp::kSum);
  EXPECT_EQ(untouched, 5);
}

}  // namespace
}  // namespace farandole
