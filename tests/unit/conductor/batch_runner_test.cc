// Batches one after another, sends and receives beside them.
#include "conductor/batch_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "conductor/point_to_point.h"
#include "unit/conductor/fake_engine.h"
#include "unit/conductor/fake_observer.h"

namespace farandole::test {
namespace {

using collective::Progress;
using control::Kind;

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Member 1 of two.
class RunningTest : public ::testing::Test {
 protected:
  conductor::EntryPtr entry(Kind kind) {
    auto made = std::make_shared<conductor::Entry>();
    made->request.name = "a";
    made->request.meta.kind = kind;
    made->request.meta.shape = {4};
    made->request.input = made->request.output = memory_.data();
    made->request.outputBytes = sizeof memory_;
    return made;
  }

  std::array<float, 64> memory_{};
  const TimePoint now_{1000s};
  const conductor::Members members_{{10, 11}, {"here", "there"}, 1};
  FakeEngine engine_{1, 2};
  FakeObserver observer_;
  conductor::Culprits culprits_{observer_, members_};
};

class BatchRunnerTest : public RunningTest {
 protected:
  void start(Kind kind, std::uint64_t position) {
    const auto one = entry(kind);
    one->agreed = std::make_shared<control::Meta>(one->request.meta);
    runner_.start({one}, 0, now_, position);
  }

  conductor::BatchRunner runner_{engine_, members_, culprits_};
};

TEST_F(BatchRunnerTest, RunsABatchToItsEnd) {
  engine_.progress = Progress::kPending;
  engine_.nap = 3ms;
  EXPECT_EQ(runner_.nap(), Duration::max());
  start(Kind::kAllreduce, 7);
  EXPECT_TRUE(runner_.runs());
  EXPECT_FALSE(runner_.advance(now_));
  EXPECT_TRUE(runner_.moved());
  EXPECT_EQ(runner_.nap(), 3ms);
  EXPECT_EQ(runner_.position(), 7U);
  EXPECT_EQ(runner_.since(), now_);
  EXPECT_EQ(runner_.executed(), 0U) << "not before it has ended";
  engine_.progress = Progress::kDone;
  const auto ended = runner_.advance(now_);
  ASSERT_TRUE(ended);
  EXPECT_TRUE(ended->status.ok());
  EXPECT_FALSE(ended->failed);
  EXPECT_EQ(ended->run.executions().size(), 1U);
  EXPECT_FALSE(runner_.runs());
  EXPECT_EQ(runner_.position(), std::nullopt);
  EXPECT_EQ(runner_.executed(), 7U);
  EXPECT_EQ(runner_.ended(), 1U);
}
TEST_F(BatchRunnerTest, WhatIsNoBatchIsExecutedWhenItIsRead) {
  runner_.executedUpTo(5);
  EXPECT_EQ(runner_.executed(), 5U);
  EXPECT_EQ(runner_.ended(), 0U);
}
TEST_F(BatchRunnerTest, AFailureOfTheEngineIsToldWhenItIsKnownWhose) {
  engine_.progress = Progress::kFailed;
  engine_.failure = Status(Code::kPeerLost, "the connection ended").withRank(10);
  observer_.blames[10] = {12, true};
  start(Kind::kAllreduce, 1);
  EXPECT_FALSE(runner_.advance(now_));
  EXPECT_FALSE(runner_.advance(now_ + 500ms));
  const auto ended = runner_.advance(now_ + 1s);
  ASSERT_TRUE(ended);
  EXPECT_TRUE(ended->failed);
  EXPECT_EQ(ended->status.rank(), 12);
}
TEST_F(BatchRunnerTest, AResultThatDoesNotFitIsNoFailureOfTheEngine) {
  engine_.told = {8, 3, conductor::kNoLimit, 4};
  start(Kind::kAllgather, 1);
  const auto ended = runner_.advance(now_);
  ASSERT_TRUE(ended);
  EXPECT_FALSE(ended->failed);
  EXPECT_EQ(ended->status.code(), Code::kMismatch);
  EXPECT_EQ(ended->status.rank(), 10);
  EXPECT_THAT(ended->status.message(),
              HasSubstr("the output of rank 10 on here has room for 8 bytes, but 28 are to be"));
  EXPECT_THAT(engine_.started, ElementsAre("exchange"));
}
TEST_F(BatchRunnerTest, WhatIsGivenUpIsNotExecuted) {
  engine_.progress = Progress::kPending;
  start(Kind::kAllreduce, 1);
  runner_.giveUp();
  EXPECT_FALSE(runner_.runs());
  EXPECT_EQ(runner_.executed(), 0U);
}

class PointToPointTest : public RunningTest {
 protected:
  conductor::PointToPoint transfers_{engine_, members_, culprits_};
  std::vector<conductor::PointToPoint::Finished> finished_;
};

TEST_F(PointToPointTest, NothingMovesWithoutThem) {
  EXPECT_FALSE(transfers_.advance(now_, finished_));
  EXPECT_EQ(transfers_.nap(), Duration::max());
}
TEST_F(PointToPointTest, AreStartedByTheNextStep) {
  transfers_.add(entry(Kind::kSend));
  transfers_.add(entry(Kind::kReceive));
  EXPECT_THAT(engine_.started, IsEmpty());
  engine_.arrived = {0, 12};
  EXPECT_TRUE(transfers_.advance(now_, finished_));
  EXPECT_THAT(engine_.started, ElementsAre("send", "receive"));
  ASSERT_EQ(finished_.size(), 2U);
  const conductor::Outcome& received = finished_[1].entry->outcome;
  EXPECT_EQ(received.source, 10);
  EXPECT_EQ(received.bytes, 12U);
  EXPECT_EQ(received.data, memory_.data());
  EXPECT_THAT(received.shape, ElementsAre(4));
  EXPECT_THAT(transfers_.takeInFlight(), IsEmpty());
}
TEST_F(PointToPointTest, StayUnderWayUntilTheEngineIsDone) {
  engine_.progress = Progress::kPending;
  engine_.moved = false;
  engine_.nap = 2ms;
  transfers_.add(entry(Kind::kSend));
  EXPECT_TRUE(transfers_.advance(now_, finished_)) << "it was started";
  EXPECT_FALSE(transfers_.advance(now_, finished_));
  EXPECT_EQ(transfers_.nap(), 2ms);
  EXPECT_THAT(finished_, IsEmpty());
}
TEST_F(PointToPointTest, AFailureIsToldWhenItIsKnownWhose) {
  engine_.progress = Progress::kFailed;
  engine_.failure = Status(Code::kPeerLost, "the connection ended").withRank(10);
  transfers_.add(entry(Kind::kSend));
  transfers_.advance(now_, finished_);
  EXPECT_THAT(finished_, IsEmpty());
  EXPECT_TRUE(transfers_.advance(now_ + 1s, finished_));
  ASSERT_EQ(finished_.size(), 1U);
  EXPECT_EQ(finished_[0].status.rank(), 10);
}
TEST_F(PointToPointTest, CanBeTakenBeforeTheyStartAndAfter) {
  engine_.progress = Progress::kPending;
  const auto first = entry(Kind::kSend);
  const auto second = entry(Kind::kSend);
  transfers_.add(first);
  transfers_.advance(now_, finished_);
  transfers_.add(second);
  EXPECT_THAT(transfers_.takeNew(), ElementsAre(second));
  const auto underWay = transfers_.takeInFlight();
  ASSERT_EQ(underWay.size(), 1U);
  EXPECT_EQ(underWay[0].entry, first);
  EXPECT_FALSE(transfers_.advance(now_, finished_));
}

}  // namespace
}  // namespace farandole::test
