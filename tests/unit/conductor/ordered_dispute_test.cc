// Ordered operations that are small on some members only.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <set>

#include "conductor/ordered_operations.h"
#include "ordered_members.h"

namespace farandole::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::array<float, 4> memory = {};

conductor::EntryPtr sum(std::string name, std::int64_t count = 4) {
  const auto entry =
      entryOf(control::Kind::kAllreduce, std::move(name), DType::kFloat32, count, memory.data());
  entry->request.output = memory.data();
  return entry;
}
conductor::EntryPtr large(std::string name) { return sum(std::move(name), 1'000'000); }

TEST(OrderedDispute, SendsNothingForWhatAllPass) {
  OrderedMembers group(2);
  for (int i = 0; i < 2; ++i) {
    for (int n = 0; n < 3; ++n) {
      const auto entry = large("large");
      group[i].countByName(entry);
      if (n == 1) group.submit(i, sum("small"));
      if (n == 1) continue;  // still under way behind the small one
      group[i].channel().ended(*entry);
    }
    EXPECT_EQ(group.underWay(i, 1 - i), 1U);
  }
  for (const auto& mine : group.settle()) {
    ASSERT_EQ(mine.size(), 1U);
    EXPECT_TRUE(mine[0].status.ok()) << mine[0].status.message();
  }
}

TEST(OrderedDispute, FailsOnAllMembersWithOneText) {
  for (const bool backwards : {false, true}) {
    for (const char* name : {"x", ""}) {
      OrderedMembers group(4);
      for (int i = 0; i < 4; ++i) {
        if (i == 0 || i == 3) {
          group[i].countByName(large(name));
        } else {
          group.submit(i, sum(name));
        }
        group.submit(i, sum("next"));
      }
      std::set<std::string> texts;
      for (const auto& mine : group.settle(backwards)) {
        ASSERT_EQ(mine.size(), 2U);
        EXPECT_EQ(mine[0].status.code(), Code::kMismatch);
        EXPECT_EQ(mine[0].culprit, 1);
        texts.insert(mine[0].status.message());
        EXPECT_TRUE(mine[1].status.ok()) << mine[1].status.message();
      }
      EXPECT_TRUE(group.failure.ok()) << group.failure.message();
      EXPECT_THAT(texts, ElementsAre("ranks disagree about '" +
                                     std::string(*name == 0 ? "ordered operation 1" : name) +
                                     "'; shape: rank 0, rank 3 has [1000000], rank 1, rank 2 has "
                                     "[4]"));
    }
  }
}

TEST(OrderedDispute, NobodyIsToldBeforeTheOperationIsTakenBack) {
  OrderedMembers group(2);
  std::vector<conductor::OrderedOperations::Finished> finished;
  const auto entry = large("x");
  group.submit(0, sum("x"));
  group.deliver(0, 1);
  ASSERT_TRUE(group[1].step(finished).ok());
  EXPECT_TRUE(group[1].takeDisputed().empty());  // not there yet
  group[1].countByName(entry);
  EXPECT_TRUE(group[1].channel().stirred());
  ASSERT_TRUE(group[1].step(finished).ok());
  EXPECT_THAT(group[1].takeDisputed(), ElementsAre(entry));
  ASSERT_TRUE(group[1].step(finished).ok());
  EXPECT_TRUE(group[1].takeDisputed().empty());  // once is enough
  EXPECT_EQ(group.underWay(1, 0), 0U);
  EXPECT_TRUE(finished.empty());
  group[1].channel().retracted(*entry);
  EXPECT_EQ(group.underWay(1, 0), 1U);
  ASSERT_TRUE(group[1].step(finished).ok());
  ASSERT_EQ(finished.size(), 1U);
  EXPECT_EQ(finished[0].entry, entry);
  EXPECT_EQ(finished[0].status.code(), Code::kMismatch);
  EXPECT_EQ(group.settle()[0].size(), 1U);
}

TEST(OrderedDispute, IsAnsweredByOneWhoseOperationIsOver) {
  OrderedMembers group(3);
  group.submit(0, sum("x"));
  for (int i = 1; i < 3; ++i) {
    const auto entry = large("y");
    group[i].countByName(entry);
    group[i].channel().ended(*entry);
  }
  const auto all = group.settle();
  ASSERT_EQ(all[0].size(), 1U);
  EXPECT_EQ(all[0][0].status.code(), Code::kMismatch);
  EXPECT_THAT(all[0][0].status.message(),
              HasSubstr("ordered operation 1 of rank 1 was another one, and is over"));
  EXPECT_TRUE(all[1].empty() && all[2].empty());
  for (int i = 0; i < 3; ++i) group.submit(i, sum("next"));
  for (const auto& mine : group.settle()) {
    ASSERT_EQ(mine.size(), 1U);
    EXPECT_TRUE(mine[0].status.ok()) << mine[0].status.message();
  }
}

// Many at once: the windows hold, and what comes is no offence.
TEST(OrderedDispute, OfManyAtOnce) {
  constexpr std::size_t kMany = 100;
  for (const bool backwards : {false, true}) {
    OrderedMembers group(3);
    for (std::size_t n = 0; n < kMany; ++n) {
      for (int i = 0; i < 3; ++i) {
        if (static_cast<std::size_t>(i) == n % 3) {
          group[i].countByName(large("x"));
        } else {
          group.submit(i, sum("x"));
        }
      }
    }
    for (const auto& mine : group.settle(backwards)) {
      EXPECT_EQ(mine.size(), kMany);
      for (const auto& each : mine) EXPECT_EQ(each.status.code(), Code::kMismatch);
    }
    EXPECT_TRUE(group.failure.ok()) << group.failure.message();
  }
}

TEST(OrderedDispute, HoldsOnlyWhatWasSubmittedBefore) {
  OrderedMembers group(2);
  EXPECT_FALSE(group[0].channel().holds("x"));
  group[0].countByName(large("x"));
  EXPECT_FALSE(group[0].channel().holds("x"));
  group.submit(0, sum("x"));
  EXPECT_TRUE(group[0].channel().holds("x"));
  EXPECT_TRUE(group[0].channel().holds("x", 2));
  EXPECT_FALSE(group[0].channel().holds("x", 1));
  EXPECT_FALSE(group[0].channel().holds("y"));
}

TEST(OrderedDispute, GivesBackWhatTheSequencerHasNotAnyMore) {
  OrderedMembers group(2);
  const auto entry = large("x");
  const auto elsewhere = large("y");
  std::vector<conductor::OrderedOperations::Finished> finished;
  group[0].countByName(entry);
  group[0].countByName(elsewhere);
  group.submit(1, sum("x"));
  group.deliver(1, 0);
  ASSERT_TRUE(group[0].step(finished).ok());
  group[0].channel().retracted(*entry);
  EXPECT_THAT(group[0].takeAll(), ElementsAre(entry));
}

}  // namespace
}  // namespace farandole::test
