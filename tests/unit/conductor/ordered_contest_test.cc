// Ordered operations that are small on some members only.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <set>

#include "conductor/ordered_lane.h"
#include "lanes.h"

namespace farandole::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::array<float, 4> memory = {};

EntryPtr sum(std::string name, std::int64_t count = 4) {
  const auto entry =
      entryOf(Kind::kAllreduce, std::move(name), DType::kFloat32, count, memory.data());
  entry->request.output = memory.data();
  return entry;
}
EntryPtr large(std::string name) { return sum(std::move(name), 1'000'000); }

TEST(OrderedContest, SendsNothingForWhatAllPass) {
  Lanes lanes(2);
  for (int i = 0; i < 2; ++i) {
    for (int n = 0; n < 3; ++n) {
      const auto entry = large("large");
      lanes[i].pass(entry);
      if (n == 1) lanes[i].submit(sum("small"));
      if (n == 1) continue;  // still under way behind the small one
      lanes[i].passed(*entry);
    }
    EXPECT_EQ(lanes.underWay(i, 1 - i), 1U);
  }
  for (const auto& mine : lanes.settle()) {
    ASSERT_EQ(mine.size(), 1U);
    EXPECT_TRUE(mine[0].status.ok()) << mine[0].status.message();
  }
}

TEST(OrderedContest, FailsOnAllMembersWithOneText) {
  for (const bool backwards : {false, true}) {
    for (const char* name : {"x", ""}) {
      Lanes lanes(4);
      for (int i = 0; i < 4; ++i) {
        if (i == 0 || i == 3) {
          lanes[i].pass(large(name));
        } else {
          lanes[i].submit(sum(name));
        }
        lanes[i].submit(sum("next"));
      }
      std::set<std::string> texts;
      for (const auto& mine : lanes.settle(backwards)) {
        ASSERT_EQ(mine.size(), 2U);
        EXPECT_EQ(mine[0].status.code(), Code::kMismatch);
        EXPECT_EQ(mine[0].culprit, 1);
        texts.insert(mine[0].status.message());
        EXPECT_TRUE(mine[1].status.ok()) << mine[1].status.message();
      }
      EXPECT_TRUE(lanes.failure.ok()) << lanes.failure.message();
      EXPECT_THAT(texts, ElementsAre("ranks disagree about '" +
                                     std::string(*name == 0 ? "ordered operation 1" : name) +
                                     "'; shape: rank 0, rank 3 has [1000000], rank 1, rank 2 has "
                                     "[4]"));
    }
  }
}

TEST(OrderedContest, NobodyIsToldBeforeTheOperationIsTakenBack) {
  Lanes lanes(2);
  std::vector<OrderedLane::Finished> finished;
  const auto entry = large("x");
  lanes[0].submit(sum("x"));
  lanes.deliver(0, 1);
  ASSERT_TRUE(lanes[1].step(finished).ok());
  EXPECT_TRUE(lanes[1].takeContested().empty());  // not there yet
  lanes[1].pass(entry);
  EXPECT_TRUE(lanes[1].stirred());
  ASSERT_TRUE(lanes[1].step(finished).ok());
  EXPECT_THAT(lanes[1].takeContested(), ElementsAre(entry));
  ASSERT_TRUE(lanes[1].step(finished).ok());
  EXPECT_TRUE(lanes[1].takeContested().empty());  // once is enough
  EXPECT_EQ(lanes.underWay(1, 0), 0U);
  EXPECT_TRUE(finished.empty());
  lanes[1].withdrawn(*entry);
  EXPECT_EQ(lanes.underWay(1, 0), 1U);
  ASSERT_TRUE(lanes[1].step(finished).ok());
  ASSERT_EQ(finished.size(), 1U);
  EXPECT_EQ(finished[0].entry, entry);
  EXPECT_EQ(finished[0].status.code(), Code::kMismatch);
  EXPECT_EQ(lanes.settle()[0].size(), 1U);
}

TEST(OrderedContest, IsAnsweredByOneWhoseOperationIsOver) {
  Lanes lanes(3);
  lanes[0].submit(sum("x"));
  for (int i = 1; i < 3; ++i) {
    const auto entry = large("y");
    lanes[i].pass(entry);
    lanes[i].passed(*entry);
  }
  const auto all = lanes.settle();
  ASSERT_EQ(all[0].size(), 1U);
  EXPECT_EQ(all[0][0].status.code(), Code::kMismatch);
  EXPECT_THAT(all[0][0].status.message(),
              HasSubstr("ordered operation 1 of rank 1 was another one, and is over"));
  EXPECT_TRUE(all[1].empty() && all[2].empty());
  for (int i = 0; i < 3; ++i) lanes[i].submit(sum("next"));
  for (const auto& mine : lanes.settle()) {
    ASSERT_EQ(mine.size(), 1U);
    EXPECT_TRUE(mine[0].status.ok()) << mine[0].status.message();
  }
}

// Many at once: the windows hold, and what comes is no offence.
TEST(OrderedContest, OfManyAtOnce) {
  constexpr std::size_t kMany = 100;
  for (const bool backwards : {false, true}) {
    Lanes lanes(3);
    for (std::size_t n = 0; n < kMany; ++n) {
      for (int i = 0; i < 3; ++i) {
        if (static_cast<std::size_t>(i) == n % 3) {
          lanes[i].pass(large("x"));
        } else {
          lanes[i].submit(sum("x"));
        }
      }
    }
    for (const auto& mine : lanes.settle(backwards)) {
      EXPECT_EQ(mine.size(), kMany);
      for (const auto& each : mine) EXPECT_EQ(each.status.code(), Code::kMismatch);
    }
    EXPECT_TRUE(lanes.failure.ok()) << lanes.failure.message();
  }
}

TEST(OrderedContest, HoldsOnlyWhatWasSubmittedBefore) {
  Lanes lanes(2);
  EXPECT_FALSE(lanes[0].holds("x"));
  lanes[0].pass(large("x"));
  EXPECT_FALSE(lanes[0].holds("x"));
  lanes[0].submit(sum("x"));
  EXPECT_TRUE(lanes[0].holds("x"));
  EXPECT_TRUE(lanes[0].holds("x", 2));
  EXPECT_FALSE(lanes[0].holds("x", 1));
  EXPECT_FALSE(lanes[0].holds("y"));
}

TEST(OrderedContest, GivesBackWhatTheSequencerHasNotAnyMore) {
  Lanes lanes(2);
  const auto entry = large("x");
  const auto elsewhere = large("y");
  std::vector<OrderedLane::Finished> finished;
  lanes[0].pass(entry);
  lanes[0].pass(elsewhere);
  lanes[1].submit(sum("x"));
  lanes.deliver(1, 0);
  ASSERT_TRUE(lanes[0].step(finished).ok());
  lanes[0].withdrawn(*entry);
  EXPECT_THAT(lanes[0].takeAll(), ElementsAre(entry));
}

}  // namespace
}  // namespace farandole::test
