#include "control/sequencer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace farandole::control {
namespace {

using std::chrono::microseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

class SequencerTest : public ::testing::Test {
 protected:
  static Sequencer::Options options(int members) {
    Sequencer::Options options;
    for (int i = 0; i < members; ++i) options.memberNames.push_back("rank " + std::to_string(i));
    return options;
  }
  static Meta meta(std::int64_t elements = 8) {
    Meta result;
    result.shape = {elements};
    return result;
  }
  // Returns everything that the sequencer wants in the log when a thread waits and the engine is
  // idle.
  static std::vector<LogEntry> decide(Sequencer& sequencer, TimePoint now = TimePoint(seconds(1))) {
    std::vector<LogEntry> entries;
    sequencer.decide({true, true, now}, entries);
    return entries;
  }
  template <typename T>
  static std::vector<T> only(const std::vector<LogEntry>& entries) {
    std::vector<T> found;
    for (const auto& entry : entries) {
      if (const T* each = std::get_if<T>(&entry)) found.push_back(*each);
    }
    return found;
  }
  static void announce(Sequencer& s, int member, const std::string& name, Meta m = meta()) {
    ASSERT_TRUE(s.submit(member, Announce{name, std::move(m), false}, TimePoint(seconds(1))).ok());
  }
};

TEST_F(SequencerTest, RunsANameWhenTheLastMemberHasIt) {
  Sequencer s(options(3));
  announce(s, 0, "a");
  announce(s, 2, "a");
  EXPECT_TRUE(decide(s).empty());
  announce(s, 1, "a");
  const auto entries = decide(s);
  ASSERT_EQ(entries.size(), 2u);
  const auto define = only<Define>(entries);
  ASSERT_EQ(define.size(), 1u);
  EXPECT_EQ(define[0].name, "a");
  EXPECT_EQ(only<Batch>(entries)[0].plans, std::vector<PlanId>{define[0].plan});
}

TEST_F(SequencerTest, ARepeatNeedsNoSecondDefinition) {
  Sequencer s(options(2));
  announce(s, 0, "a");
  announce(s, 1, "a");
  const PlanId plan = only<Define>(decide(s))[0].plan;
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(s.submit(1, Repeat{plan, false}, TimePoint()).ok());
    ASSERT_TRUE(s.submit(0, Repeat{plan, false}, TimePoint()).ok());
    const auto entries = decide(s);
    ASSERT_EQ(entries.size(), 1u);
    EXPECT_EQ(only<Batch>(entries)[0].plans, std::vector<PlanId>{plan});
  }
}

TEST_F(SequencerTest, NamesTheOddOneOutAndGoesOn) {
  Sequencer s(options(3));
  Meta other = meta();
  other.dtype = DType::kInt32;
  announce(s, 0, "a");
  announce(s, 1, "a", other);
  announce(s, 2, "a");
  const auto refuse = only<Refuse>(decide(s));
  ASSERT_EQ(refuse.size(), 1u);
  EXPECT_EQ(refuse[0].culprit, 1);
  EXPECT_NE(refuse[0].text.find("rank 0, rank 2 has float32, rank 1 has int32"), std::string::npos)
      << refuse[0].text;
  for (int member = 0; member < 3; ++member) announce(s, member, "a");
  EXPECT_EQ(only<Batch>(decide(s)).size(), 1u);
}

TEST_F(SequencerTest, AChangedShapeIsComparedWithWhatTheOthersRepeat) {
  Sequencer s(options(2));
  announce(s, 0, "a");
  announce(s, 1, "a");
  const PlanId plan = only<Define>(decide(s))[0].plan;
  ASSERT_TRUE(s.submit(0, Repeat{plan, false}, TimePoint()).ok());
  announce(s, 1, "a", meta(9));
  EXPECT_EQ(only<Refuse>(decide(s)).size(), 1u);
  // If both change, there is a new definition.
  announce(s, 0, "a", meta(9));
  announce(s, 1, "a", meta(9));
  const auto entries = decide(s);
  ASSERT_EQ(only<Define>(entries).size(), 1u);
  EXPECT_EQ(only<Define>(entries)[0].meta.shape, std::vector<std::int64_t>{9});
}

TEST_F(SequencerTest, FusesOneKindUpToTheThreshold) {
  auto o = options(1);
  o.fusionBytes = 100;
  Sequencer s(o);
  for (int i = 0; i < 6; ++i) announce(s, 0, "f" + std::to_string(i), meta(10));  // 40 bytes each
  Meta integer = meta(10);
  integer.dtype = DType::kInt32;
  announce(s, 0, "i", integer);
  const auto batches = only<Batch>(decide(s));
  ASSERT_EQ(batches.size(), 4u);
  EXPECT_EQ(batches[0].plans.size(), 2u);
  EXPECT_EQ(batches[3].plans.size(), 1u);
}

TEST_F(SequencerTest, AGroupLeavesTogetherOrNotAtAll) {
  Sequencer s(options(2));
  Meta grouped = meta();
  grouped.group = 5;
  grouped.groupSize = 2;
  announce(s, 0, "a", grouped);
  announce(s, 1, "a", grouped);
  announce(s, 0, "b", grouped);
  EXPECT_TRUE(only<Batch>(decide(s)).empty());
  announce(s, 1, "b", grouped);
  const auto batches = only<Batch>(decide(s));
  ASSERT_EQ(batches.size(), 1u);
  EXPECT_EQ(batches[0].plans.size(), 2u);

  Meta wrong = grouped;
  wrong.shape = {3};
  announce(s, 0, "c", grouped);
  announce(s, 1, "c", grouped);
  announce(s, 0, "d", grouped);
  announce(s, 1, "d", wrong);
  const auto entries = decide(s);
  EXPECT_EQ(only<Refuse>(entries).size(), 2u);
  EXPECT_TRUE(only<Batch>(entries).empty());
}

// Whether all results fit is known only when the members have exchanged sizes.
TEST_F(SequencerTest, AGroupWhoseSizesOthersDecideIsOneBatch) {
  Sequencer s(options(2));
  Meta sum = meta();
  sum.group = 5;
  sum.groupSize = 3;
  Meta gather = sum;
  gather.kind = Kind::kAllgather;
  Meta integer = sum;
  integer.dtype = DType::kInt32;
  for (const int member : {0, 1}) {
    announce(s, member, "before");
    announce(s, member, "a", sum);
    announce(s, member, "b", gather);
    announce(s, member, "c", integer);
    announce(s, member, "behind");
  }
  const auto batches = only<Batch>(decide(s));
  ASSERT_EQ(batches.size(), 2u);
  EXPECT_EQ(batches[0].plans.size(), 2u);  // the group's reduction is not among them
  EXPECT_EQ(batches[1].plans.size(), 3u);
}

TEST_F(SequencerTest, AGroupWhoseSizesAreKnownLeavesInAsManyBatchesAsItNeeds) {
  Sequencer s(options(1));
  Meta sum = meta();
  sum.group = 5;
  sum.groupSize = 2;
  Meta integer = sum;
  integer.dtype = DType::kInt32;
  announce(s, 0, "a", sum);
  announce(s, 0, "b", integer);
  EXPECT_EQ(only<Batch>(decide(s)).size(), 2u);
}

TEST_F(SequencerTest, OneThatJoinsInTheMiddleOfAGroupIsRefused) {
  Sequencer s(options(2));
  Meta gather = meta();
  gather.kind = Kind::kAllgather;
  gather.group = 5;
  gather.groupSize = 2;
  announce(s, 0, "a", gather);
  announce(s, 0, "b", gather);
  announce(s, 1, "a", gather);
  ASSERT_TRUE(s.submit(1, Join{}, TimePoint()).ok());
  const auto entries = decide(s);
  EXPECT_TRUE(only<Batch>(entries).empty());
  ASSERT_EQ(only<Refuse>(entries).size(), 2u);
  EXPECT_THAT(only<Refuse>(entries)[0].text, HasSubstr("rank 1 has submitted only a part"));
}

TEST_F(SequencerTest, JoinedMembersAreNotWaitedFor) {
  Sequencer s(options(2));
  announce(s, 0, "a");
  ASSERT_TRUE(s.submit(1, Join{}, TimePoint()).ok());
  auto batches = only<Batch>(decide(s));
  ASSERT_EQ(batches.size(), 1u);
  EXPECT_EQ(batches[0].joined, std::vector<std::int64_t>{1});
  Meta alltoall = meta();
  alltoall.kind = Kind::kAlltoall;
  announce(s, 0, "t", alltoall);
  const auto refuse = only<Refuse>(decide(s));
  ASSERT_EQ(refuse.size(), 1u);
  EXPECT_EQ(refuse[0].culprit, 1);
  ASSERT_TRUE(s.submit(0, Join{}, TimePoint()).ok());
  const auto joined = only<Joined>(decide(s));
  ASSERT_EQ(joined.size(), 1u);
  EXPECT_EQ(joined[0].last, 0);
  announce(s, 0, "b");
  EXPECT_TRUE(only<Batch>(decide(s)).empty());
}

TEST_F(SequencerTest, ForgottenPlansAreSentAgain) {
  auto o = options(1);
  o.planCapacity = 2;
  Sequencer s(o);
  announce(s, 0, "a");
  const PlanId a = only<Define>(decide(s))[0].plan;
  announce(s, 0, "b");
  announce(s, 0, "c");
  (void)decide(s);
  announce(s, 0, "d");  // pushes the oldest out
  (void)decide(s);
  ASSERT_TRUE(s.submit(0, Repeat{a, false}, TimePoint()).ok());
  const auto resend = only<Resend>(decide(s));
  ASSERT_EQ(resend.size(), 1u);
  EXPECT_EQ(resend[0].plan, a);
  EXPECT_FALSE(s.submit(0, Repeat{{1000, 1}, false}, TimePoint()).ok());
}

TEST_F(SequencerTest, ACancelledSubmissionFailsTheOthersWhenTheyCome) {
  Sequencer s(options(2));
  announce(s, 1, "a");
  ASSERT_TRUE(s.submit(1, Withdraw{"a"}, TimePoint()).ok());
  EXPECT_EQ(only<Withdrawn>(decide(s)).size(), 1u);
  announce(s, 0, "a");
  const auto refuse = only<Refuse>(decide(s));
  ASSERT_EQ(refuse.size(), 1u);
  EXPECT_EQ(refuse[0].culprit, 1);
  // What member 1 submits from now on is another operation of that name.
  EXPECT_EQ(refuse[0].spared, std::vector<std::int64_t>{1});
}

TEST_F(SequencerTest, ARetractedSubmissionHasNeverBeen) {
  Sequencer s(options(2));
  ASSERT_TRUE(s.submit(1, Retract{"a", false}, TimePoint()).ok());  // there is none
  announce(s, 1, "a");
  ASSERT_TRUE(s.submit(1, Retract{"a", false}, TimePoint()).ok());
  const auto withdrawn = only<Withdrawn>(decide(s));
  ASSERT_EQ(withdrawn.size(), 1u);
  EXPECT_EQ(withdrawn[0].member, 1);
  EXPECT_TRUE(s.stalls(TimePoint(seconds(100)), seconds(1)).empty());
  // The others wait for the next one.
  announce(s, 0, "a");
  EXPECT_TRUE(decide(s).empty());
  announce(s, 1, "a");
  EXPECT_EQ(only<Batch>(decide(s)).size(), 1u);
  // It is too late, because a batch will follow.
  ASSERT_TRUE(s.submit(1, Retract{"a", false}, TimePoint()).ok());
  EXPECT_TRUE(decide(s).empty());
}

TEST_F(SequencerTest, WaitsForCompanyOnlyWhileNobodyWaits) {
  auto o = options(1);
  o.batchDelay = microseconds(100);
  Sequencer s(o);
  const TimePoint start(seconds(1));
  ASSERT_TRUE(s.submit(0, Announce{"a", meta(), false}, start).ok());
  std::vector<LogEntry> entries;
  s.decide({true, false, start}, entries);
  EXPECT_TRUE(only<Batch>(entries).empty());
  ASSERT_TRUE(s.due());
  EXPECT_EQ(*s.due(), start + microseconds(100));
  s.decide({false, true, start}, entries);
  EXPECT_TRUE(only<Batch>(entries).empty());  // the engine is busy: more may gather
  s.decide({true, false, start + microseconds(100)}, entries);
  EXPECT_EQ(only<Batch>(entries).size(), 1u);
}

TEST_F(SequencerTest, TellsWhoIsMissing) {
  Sequencer s(options(3));
  announce(s, 1, "late");
  const auto stalls = s.stalls(TimePoint(seconds(100)), seconds(60));
  ASSERT_EQ(stalls.size(), 1u);
  EXPECT_EQ(stalls[0].name, "late");
  EXPECT_EQ(stalls[0].present, std::vector<int>{1});
  EXPECT_EQ(stalls[0].missing, (std::vector<int>{0, 2}));
  EXPECT_TRUE(s.stalls(TimePoint(seconds(30)), seconds(60)).empty());
}

TEST_F(SequencerTest, AMemberThatFloodsIsNamed) {
  Sequencer s(options(2));
  std::uint32_t most = 0;
  Status status;
  for (; most <= kMaxPlans && status.ok(); ++most) {
    const Announce announce{"t" + std::to_string(most), meta(), false};
    status = s.submit(1, announce, TimePoint(seconds(1)));
  }
  EXPECT_EQ(most, kMaxPlans + 1);
  EXPECT_THAT(status.message(), HasSubstr("65536 operations wait for other ranks"));
  EXPECT_THAT(status.message(), HasSubstr("'t65536' of rank 1"));
}

TEST_F(SequencerTest, AMemberThatFloodsWithLongNamesIsNamed) {
  Sequencer s(options(2));
  Status status;
  int count = 0;
  for (; count < 20000 && status.ok(); ++count) {
    std::string name = std::to_string(count);
    name.resize(kMaxNameBytes, 'x');
    status = s.submit(1, Announce{std::move(name), meta(), false}, TimePoint(seconds(1)));
  }
  EXPECT_EQ(count, (64 << 20) / (static_cast<int>(kMaxNameBytes) + 8) + 1);
  EXPECT_THAT(status.message(), HasSubstr("rank 1 has announced more than 64 MiB"));
}

TEST_F(SequencerTest, WhatIsDoneOrTakenBackIsNoFlood) {
  auto roomy = options(2);
  roomy.planCapacity = 1 << 30;
  Sequencer s(roomy);
  const std::string tail(kMaxNameBytes - 8, 'x');
  for (std::uint32_t i = 0; i < kMaxPlans + 50; ++i) {
    const std::string name = std::to_string(i) + (i < 17000 ? tail : "");
    announce(s, 1, name);
    if (i % 3 == 0) {
      ASSERT_TRUE(s.submit(1, Retract{name, false}, TimePoint(seconds(1))).ok());
    } else {
      announce(s, 0, name);
    }
    decide(s);
  }
}

}  // namespace
}  // namespace farandole::control
