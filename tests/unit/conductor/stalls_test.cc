// What is ended, and what is only warned of, when members do not submit.
#include "conductor/stalls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/conductor/fake_observer.h"

namespace farandole::test {
namespace {

using conductor::Stalls;
using control::Sequencer;

using namespace std::chrono_literals;
using ::testing::HasSubstr;

// Member 0 of two has submitted "a" at the beginning; the other one has not.
class StallsTest : public ::testing::Test {
 protected:
  StallsTest() {
    Sequencer::Options options;
    options.memberNames = {"rank 10", "rank 11"};
    sequencer_ = std::make_unique<Sequencer>(std::move(options));
    EXPECT_TRUE(sequencer_->submit(0, control::Announce{"a", control::Meta(), false}, begin_).ok());
  }
  Stalls::Situation asSequencer(Duration after) {
    return {.now = begin_ + after, .sequencer = sequencer_.get()};
  }
  // The situation of a member that waits for the sequencer.
  Stalls::Situation asMember(Duration after) {
    return {.now = begin_ + after, .submittedBefore = [this](TimePoint then) {
              return begin_ < then ? std::optional<std::string>("a") : std::nullopt;
            }};
  }
  std::string warned(const Stalls::Situation& situation, Stalls::Limits limits) {
    ::testing::internal::CaptureStderr();
    const auto verdict = stalls_.check(situation, limits);
    EXPECT_TRUE(verdict.broken.ok());
    EXPECT_FALSE(verdict.abort);
    return ::testing::internal::GetCapturedStderr();
  }

  const TimePoint begin_{1000s};
  const conductor::Members members_{{10, 11}, {"here", "there"}, 0};
  FakeObserver observer_;
  std::unique_ptr<Sequencer> sequencer_;
  Stalls stalls_{observer_, members_};
};

TEST_F(StallsTest, AreNothingBeforeTheirTime) {
  const auto verdict = stalls_.check(asSequencer(9s), {60s, 10s});
  EXPECT_TRUE(verdict.broken.ok());
  EXPECT_FALSE(verdict.abort);
}
TEST_F(StallsTest, AreEndedByTheSequencerForAll) {
  const auto verdict = stalls_.check(asSequencer(10s), {60s, 10s});
  ASSERT_TRUE(verdict.abort);
  EXPECT_EQ(verdict.abort->culprit, 1);
  EXPECT_THAT(verdict.abort->text,
              HasSubstr("'a' was submitted by rank(s) 10 but not by rank(s) 11 within the stall"));
}
TEST_F(StallsTest, AreNotEndedWithoutALimit) {
  EXPECT_FALSE(stalls_.check(asSequencer(10h), {0s, 0s}).abort);
}
TEST_F(StallsTest, AreLookedForNowAndThen) {
  EXPECT_FALSE(stalls_.check(asSequencer(9900ms), {0s, 10s}).abort);
  EXPECT_FALSE(stalls_.check(asSequencer(10s), {0s, 10s}).abort) << "it has just looked";
  EXPECT_TRUE(stalls_.check(asSequencer(10100ms), {0s, 10s}).abort);
}
TEST_F(StallsTest, AreWarnedOfAgainAndAgainButNotAlways) {
  const Stalls::Limits limits{5s, 0s};
  EXPECT_EQ(warned(asSequencer(4s), limits), "");
  EXPECT_THAT(warned(asSequencer(5s), limits),
              HasSubstr("'a' has been ready on rank(s) 10 for 5 s and is still missing from"
                        " rank(s) 11"));
  EXPECT_EQ(warned(asSequencer(6s), limits), "");
  EXPECT_THAT(warned(asSequencer(10s), limits), HasSubstr("for 10 s"));
}
TEST_F(StallsTest, NobodyIsLateBecauseThisProcessWasStopped) {
  auto situation = asSequencer(60s);
  situation.resumed = begin_ + 55s;
  EXPECT_EQ(warned(situation, {10s, 10s}), "");
  situation = asSequencer(68s);
  situation.resumed = begin_ + 55s;
  EXPECT_TRUE(stalls_.check(situation, {10s, 10s}).abort);
}

TEST_F(StallsTest, ASequencerThatDoesNotAnswerIsGivenUpALittleLater) {
  EXPECT_TRUE(stalls_.check(asMember(12s), {0s, 10s}).broken.ok());
  const auto verdict = stalls_.check(asMember(12500ms), {0s, 10s});
  EXPECT_EQ(verdict.broken.code(), Code::kPeerLost);
  EXPECT_EQ(verdict.broken.rank(), 10);
  EXPECT_THAT(verdict.broken.message(), HasSubstr("rank 10 on here, which orders the operations"));
}
TEST_F(StallsTest, ASequencerNeedNotAnswerWhileABatchRuns) {
  auto situation = asMember(1h);
  situation.runsSince = begin_;
  EXPECT_TRUE(stalls_.check(situation, {0s, 10s}).broken.ok());
}

TEST_F(StallsTest, ABatchIsGivenUpIfAMemberIsStoppedInIt) {
  auto situation = asSequencer(20s);
  situation.runsSince = begin_ + 5s;
  observer_.stoppedRanks = {10};
  EXPECT_TRUE(stalls_.check(situation, {0s, 12s}).broken.ok()) << "this rank itself";
  observer_.stoppedRanks = {11};
  situation.now += 1s;
  const auto verdict = stalls_.check(situation, {0s, 12s});
  EXPECT_EQ(verdict.broken.rank(), 11);
  EXPECT_THAT(verdict.broken.message(), HasSubstr("rank 11 on there was stopped in the middle"));
}

}  // namespace
}  // namespace farandole::test
