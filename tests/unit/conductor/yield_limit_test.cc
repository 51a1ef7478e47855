#include "conductor/yield_limit.h"

#include <gtest/gtest.h>

namespace farandole::conductor {
namespace {

using std::chrono::milliseconds;

TEST(YieldLimit, StaysAwakeWhileWaitsAreShort) {
  YieldLimit limit(milliseconds(2));
  EXPECT_EQ(limit.now(), milliseconds(2));
  for (int i = 0; i < 100; ++i) limit.waited(i % 4 == 0 ? milliseconds(50) : milliseconds(1));
  EXPECT_EQ(limit.now(), milliseconds(2));
}

TEST(YieldLimit, SleepsAfterLongWaitsUntilTheyAreShortAgain) {
  YieldLimit limit(milliseconds(2));
  for (int i = 0; i < 100; ++i) limit.waited(milliseconds(50));
  EXPECT_EQ(limit.now(), Duration::zero());
  EXPECT_EQ(limit.limit(), milliseconds(2));
  for (int i = 0; i < 8; ++i) limit.waited(milliseconds(1));
  EXPECT_EQ(limit.now(), milliseconds(2));
}

TEST(YieldLimit, OfZeroNeverStaysAwake) {
  YieldLimit limit(Duration::zero());
  limit.waited(Duration::zero());
  EXPECT_EQ(limit.now(), Duration::zero());
}

}  // namespace
}  // namespace farandole::conductor
