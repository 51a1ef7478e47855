#include "conductor/endurance.h"

#include <gtest/gtest.h>

namespace farandole::conductor {
namespace {

using std::chrono::milliseconds;

TEST(Endurance, StaysAwakeWhileWaitsAreShort) {
  Endurance endurance(milliseconds(2));
  EXPECT_EQ(endurance.now(), milliseconds(2));
  for (int i = 0; i < 100; ++i) endurance.waited(i % 4 == 0 ? milliseconds(50) : milliseconds(1));
  EXPECT_EQ(endurance.now(), milliseconds(2));
}

TEST(Endurance, SleepsAfterLongWaitsUntilTheyAreShortAgain) {
  Endurance endurance(milliseconds(2));
  for (int i = 0; i < 100; ++i) endurance.waited(milliseconds(50));
  EXPECT_EQ(endurance.now(), Duration::zero());
  EXPECT_EQ(endurance.limit(), milliseconds(2));
  for (int i = 0; i < 8; ++i) endurance.waited(milliseconds(1));
  EXPECT_EQ(endurance.now(), milliseconds(2));
}

TEST(Endurance, OfZeroNeverStaysAwake) {
  Endurance endurance(Duration::zero());
  endurance.waited(Duration::zero());
  EXPECT_EQ(endurance.now(), Duration::zero());
}

}  // namespace
}  // namespace farandole::conductor
