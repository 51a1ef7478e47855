// FpModeGuard: results do not depend on the mode of the thread that drives.
#include <gtest/gtest.h>

#include <cfenv>
#include <limits>

#include "base/reduce.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace farandole {
namespace {

float sumOf(float a, float b) {
  const FpModeGuard guard;
  float result = 0;
  void* const to[] = {&result};
  const void* const from[] = {&a, &b};
  reduce(to, from, 1, DType::kFloat32, ReduceOp::kSum, Scale{}, Store::kCached);
  return result;
}

TEST(FpModeGuard, RoundsToNearestAndRestoresTheMode) {
  ASSERT_EQ(std::fesetround(FE_UPWARD), 0);
  const float sum = sumOf(1.0f, 0x1p-30f);
  const int mode = std::fegetround();
  std::fesetround(FE_TONEAREST);
  EXPECT_EQ(sum, 1.0f);
  EXPECT_EQ(mode, FE_UPWARD);
}

TEST(FpModeGuard, LeavesTheDefaultAlone) {
  ASSERT_EQ(std::fegetround(), FE_TONEAREST);
  { const FpModeGuard guard; }
  EXPECT_EQ(std::fegetround(), FE_TONEAREST);
}

#if defined(__x86_64__)
TEST(FpModeGuard, KeepsSubnormalsOfThreadsThatFlushThem) {
  const unsigned before = _mm_getcsr();
  const unsigned flushing = before | 0x8040;  // flush to zero, denormals are zero
  _mm_setcsr(flushing);
  const float tiny = std::numeric_limits<float>::denorm_min();
  const float sum = sumOf(tiny, tiny);
  const unsigned after = _mm_getcsr();
  _mm_setcsr(before);
  EXPECT_EQ(sum, 2 * tiny);
  EXPECT_EQ(after & ~0x3fu, flushing & ~0x3fu);
}
#endif

}  // namespace
}  // namespace farandole
