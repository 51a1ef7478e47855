// The sequencer between the submissions of the control channel and the log.
#include "conductor/sequencing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/conductor/fake_control.h"

namespace farandole::test {
namespace {

using control::Announce;
using control::Meta;
using control::Sequencer;

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class SequencingTest : public ::testing::Test {
 protected:
  static Sequencer::Options options() {
    Sequencer::Options options;
    options.memberNames = {"rank 0", "rank 1"};
    return options;
  }
  void submit(int member, const control::Submission& submission) {
    control_.records[member].push_back(control::encode(submission));
  }
  void submitAll(const std::string& name) {
    for (const int member : {0, 1}) submit(member, Announce{name, Meta(), false});
  }
  bool step(std::uint64_t executed = 0) { return sequencing_.step(TimePoint(1s), executed); }
  std::vector<std::string> logged() { return test::logged(control_, 2); }

  const conductor::Members members_{{0, 1}, {"here", "there"}, 0};
  FakeControl control_;
  conductor::Sequencing sequencing_{std::make_unique<Sequencer>(options()), control_, members_};
};

TEST_F(SequencingTest, DoesNothingWithoutSubmissions) {
  EXPECT_FALSE(step());
  EXPECT_THAT(logged(), IsEmpty());
}
TEST_F(SequencingTest, WhatAllHaveSubmittedGoesIntoTheLog) {
  control_.waits = true;
  submitAll("a");
  EXPECT_TRUE(step());
  EXPECT_THAT(logged(), ElementsAre("define 0.1 a", "batch 0.1"));
  EXPECT_TRUE(sequencing_.trouble().ok());
}
TEST_F(SequencingTest, WaitsUntilTheLastBatchHasBeenExecuted) {
  control_.waits = true;
  submitAll("a");
  step(0);
  submitAll("b");
  step(0);
  EXPECT_THAT(logged(), ElementsAre("define 0.1 a", "batch 0.1", "define 1.1 b"));
  step(1);
  EXPECT_THAT(logged(), ElementsAre("define 0.1 a", "batch 0.1", "define 1.1 b", "batch 1.1"));
}
TEST_F(SequencingTest, WhatFindsTheLogFullFollowsInItsOrder) {
  control_.waits = true;
  control_.logRoom = 0;
  submitAll("a");
  step();
  EXPECT_THAT(logged(), IsEmpty());
  EXPECT_FALSE(step()) << "still no room";
  control_.logRoom = 1;
  EXPECT_TRUE(step());
  EXPECT_THAT(logged(), ElementsAre("define 0.1 a"));
  sequencing_.append(control::Abort{"end", -1});
  control_.logRoom = SIZE_MAX;
  EXPECT_TRUE(step());
  EXPECT_THAT(logged(), ElementsAre("define 0.1 a", "batch 0.1", "abort end"));
}
TEST_F(SequencingTest, NamesWhoSendsNonsense) {
  control_.records[1].push_back({std::byte{77}});
  EXPECT_TRUE(step());
  EXPECT_EQ(sequencing_.trouble().message(), "a submission of rank 1 on there makes no sense");
}
TEST_F(SequencingTest, NamesWhoseRingIsCorrupt) {
  control_.submissions[1] = control::RingRead::kCorrupt;
  EXPECT_TRUE(step());
  EXPECT_EQ(sequencing_.trouble().message(), "a submission of rank 1 on there makes no sense");
}
TEST_F(SequencingTest, NamesWhoSendsMoreThanItMay) {
  control_.submissions[1] = control::RingRead::kTooMuch;
  EXPECT_TRUE(step());
  EXPECT_EQ(sequencing_.trouble().message(),
            "rank 1 on there sends more submissions than it was allowed to");
}
TEST_F(SequencingTest, NamesWhoSubmitsTwice) {
  submit(1, Announce{"a", Meta(), false});
  submit(1, Announce{"a", Meta(), false});
  EXPECT_TRUE(step());
  EXPECT_EQ(sequencing_.trouble().message(), "rank 1 submitted 'a' twice");
}

}  // namespace
}  // namespace farandole::test
