// What members have sent, kept until it is asked for. Messages that break the protocol are tried in
// conductor/ordered_trouble_test.cc.
#include "control/ordered_arrivals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace farandole::test {
namespace {

using ::testing::ElementsAre;

constexpr std::size_t kRoom = 3;

class Arrivals : public ::testing::Test {
 protected:
  void put(int member, const control::OrderedRecord& record) {
    const std::string text = control::encodeOrdered(record, kRoom);
    RawBytes message;
    message.renew(text.size());
    std::memcpy(message.data(), text.data(), text.size());
    arrivals_.receive(member, message);
  }
  void direct(int member, std::uint64_t number) { put(member, {false, number, {}, {}}); }
  void byName(int member, std::uint64_t number) { put(member, {false, number, {}, {}, true}); }

  // Member 1 of three.
  control::OrderedArrivals arrivals_{3, 1, {kRoom, 100, 4}};
  std::vector<RawBytes> taken_ = std::vector<RawBytes>(3);
  bool more_ = false;
};

TEST_F(Arrivals, AreTakenWhenAllAreHere) {
  direct(0, 0);
  EXPECT_FALSE(arrivals_.takeUsual(0, taken_, more_));
  EXPECT_FALSE(arrivals_.take(0, taken_));
  EXPECT_THAT(arrivals_.missing(0), ElementsAre(2));
  direct(2, 0);
  direct(2, 1);
  EXPECT_TRUE(arrivals_.missing(0).empty());
  ASSERT_TRUE(arrivals_.takeUsual(0, taken_, more_));
  EXPECT_TRUE(more_);
  const auto record = arrivals_.recordIn(taken_[2]);
  ASSERT_TRUE(record);
  EXPECT_EQ(record->number, 0U);
  EXPECT_THAT(arrivals_.missing(1), ElementsAre(0));
}

TEST_F(Arrivals, OneThatWentByNameIsAPartButNotAUsualOne) {
  direct(0, 5);
  byName(2, 5);
  EXPECT_FALSE(arrivals_.takeUsual(5, taken_, more_));
  ASSERT_TRUE(arrivals_.take(5, taken_));
  EXPECT_TRUE(arrivals_.recordIn(taken_[2])->byName);
  EXPECT_FALSE(arrivals_.take(5, taken_));
}

TEST_F(Arrivals, TheEarliestIsFoundAndDropped) {
  EXPECT_FALSE(arrivals_.earliest(100, 0));
  direct(0, 7);
  direct(2, 4);
  direct(2, 7);
  EXPECT_EQ(arrivals_.earliest(100, 0), 4U);
  EXPECT_FALSE(arrivals_.earliest(4, 0));
  arrivals_.drop(4);
  EXPECT_EQ(arrivals_.earliest(100, 0), 7U);
  arrivals_.drop(7);
  EXPECT_FALSE(arrivals_.earliest(100, 0));
}

TEST_F(Arrivals, WhoWentByNameIsForgottenWhenNobodyAsks) {
  byName(0, 1);
  byName(0, 2);
  EXPECT_FALSE(arrivals_.earliest(100, 2));
  EXPECT_THAT(arrivals_.missing(1), ElementsAre(0, 2));
  EXPECT_THAT(arrivals_.missing(2), ElementsAre(2));
}

TEST_F(Arrivals, LeavingIsTroubleForWhatIsNotHere) {
  direct(2, 0);
  EXPECT_FALSE(arrivals_.trouble());
  put(2, {true, 0, {}, {}});
  EXPECT_TRUE(arrivals_.trouble());
  EXPECT_EQ(arrivals_.offender(), -1);
  EXPECT_EQ(arrivals_.leftWithout(0), -1);
  EXPECT_EQ(arrivals_.leftWithout(1), 2);
  direct(2, 1);  // after its last word
  EXPECT_EQ(arrivals_.offender(), 2);
}

TEST_F(Arrivals, MemoryGoesRound) {
  for (std::uint64_t number = 0; number < 100; ++number) {
    direct(0, number);
    direct(2, number);
    ASSERT_TRUE(arrivals_.takeUsual(number, taken_, more_));
    EXPECT_FALSE(more_);
  }
  EXPECT_FALSE(arrivals_.trouble());
}

}  // namespace
}  // namespace farandole::test
