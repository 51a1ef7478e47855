// Who has left, and who is to blame for it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "conductor/culprits.h"
#include "conductor/leavers.h"
#include "unit/conductor/fake_control.h"
#include "unit/conductor/fake_observer.h"

namespace farandole::test {
namespace {

using conductor::Members;

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Member 1 of three, whose ranks are 10, 11 and 12.
const Members& three() {
  static const Members members({10, 11, 12}, {"a", "b", "c"}, 1);
  return members;
}

TEST(Members, AreNamedByRankAndHost) {
  EXPECT_EQ(three().name(2), "rank 12 on c");
  EXPECT_EQ(three().list(std::vector<int>{0, 2}), "10, 12");
  EXPECT_EQ(three().list(std::vector<int>{}), "");
  const Status status = three().fault(Code::kMismatch, "why", 2);
  EXPECT_EQ(status.rank(), 12);
  EXPECT_EQ(status.host(), "c");
  EXPECT_EQ(three().fault(Code::kMismatch, "why", -1).rank(), -1);
}
TEST(Members, ListsOfManyAreShort) {
  const Members many(std::vector<std::int32_t>(40, 7), std::vector<std::string>(40, "h"), 0);
  EXPECT_THAT(many.list(std::vector<int>(17, 3)), HasSubstr("7, 7, …"));
  EXPECT_EQ(many.list(std::vector<int>(16, 3)).find("…"), std::string::npos);
}

class CulpritsTest : public ::testing::Test {
 protected:
  // Asks about the failure of an operation that was first seen so long ago.
  bool find(Duration ago) { return culprits_.find(status_, failedAt_, begin_ + ago); }

  const TimePoint begin_{1000s};
  FakeObserver observer_;
  conductor::Culprits culprits_{observer_, three()};
  Status status_ = Status(Code::kPeerLost, "the connection ended").withRank(12, "c");
  TimePoint failedAt_{};
};

TEST_F(CulpritsTest, AreKnownAMomentAfterAConnectionEnded) {
  EXPECT_FALSE(find(0ms));
  EXPECT_FALSE(find(799ms));
  EXPECT_TRUE(find(800ms));
  EXPECT_EQ(status_.message(), "the connection ended");
  EXPECT_EQ(status_.rank(), 12);
}
TEST_F(CulpritsTest, AreThoseBecauseOfWhomTheOtherGaveUp) {
  observer_.blames[12] = {10, true};
  EXPECT_FALSE(find(0ms));
  EXPECT_TRUE(find(1s));
  EXPECT_EQ(status_.message(), "rank 12 has given up because of rank 10");
  EXPECT_EQ(status_.rank(), 10);
}
TEST_F(CulpritsTest, OneThatShutItsConnectionDownIsLost) {
  status_ = Status(Code::kShutdown, "it said good-bye").withRank(12, "c");
  EXPECT_FALSE(find(0ms));
  EXPECT_TRUE(find(1s));
  EXPECT_EQ(status_.code(), Code::kPeerLost);
  EXPECT_EQ(status_.rank(), 12);
}
TEST_F(CulpritsTest, OtherFailuresAreWhatTheySay) {
  status_ = Status(Code::kOutOfMemory, "none").withRank(12);
  EXPECT_TRUE(find(0ms));
  status_ = Status(Code::kPeerLost, "nobody in particular");
  EXPECT_TRUE(find(0ms));
}
TEST_F(CulpritsTest, OfALeavingIsTheLeaver) {
  const auto leaving = culprits_.leavingOf(2);
  ASSERT_TRUE(leaving);
  EXPECT_EQ(leaving->culprit, 12);
  EXPECT_EQ(leaving->status.rank(), 12);
  EXPECT_EQ(leaving->status.message(), "rank 12 on c has left the job while it was needed here");
}
TEST_F(CulpritsTest, OfALeavingMayBeAnother) {
  observer_.blames[12] = {10, true};
  const auto leaving = culprits_.leavingOf(2);
  ASSERT_TRUE(leaving);
  EXPECT_EQ(leaving->culprit, 10);
  EXPECT_EQ(leaving->status.rank(), 10);
  EXPECT_EQ(leaving->status.message(), "rank 12 on c has given up because of rank 10");
}
TEST_F(CulpritsTest, OfALeavingIsNobodyWhileItIsNotCertain) {
  observer_.blames[12] = {10, false};
  EXPECT_FALSE(culprits_.leavingOf(2));
}

class LeaversTest : public ::testing::Test {
 protected:
  // Reads that many entries of the log.
  void read(int entries) {
    std::vector<std::byte> entry;
    for (int i = 0; i < entries; ++i) {
      control_.log.emplace_back();
      control_.nextEntry(entry);
    }
  }

  // The members that can do nothing more.
  std::vector<int> all(std::optional<std::uint64_t> running = std::nullopt) {
    std::vector<int> found;
    leavers_.any(running, [&](int member) {
      found.push_back(member);
      return false;
    });
    return found;
  }

  FakeControl control_;
  FakeObserver observer_;
  conductor::Leavers leavers_{control_, three(), observer_, true};
};

TEST_F(LeaversTest, NobodyHasLeft) { EXPECT_THAT(all(), IsEmpty()); }
TEST_F(LeaversTest, OneThatLeftIsNeededUpToWhereItExecutedTheLog) {
  control_.left[2] = 2;
  EXPECT_THAT(all(), IsEmpty()) << "its part of the log is still to be read";
  read(2);
  EXPECT_THAT(all(), ElementsAre(2));
}
TEST_F(LeaversTest, OneThatLeftBehindTheBatchThatRunsHasDoneItsPart) {
  control_.left[0] = 3;
  EXPECT_THAT(all(3), IsEmpty());
  EXPECT_THAT(all(4), ElementsAre(0)) << "it left before it executed this one";
}
TEST_F(LeaversTest, AreAskedForUntilOneEndsTheSet) {
  control_.left[0] = control_.left[2] = 0;
  EXPECT_THAT(all(), ElementsAre(0, 2));
  int calls = 0;
  EXPECT_TRUE(leavers_.any(std::nullopt, [&](int) { return ++calls == 1; }));
  EXPECT_EQ(calls, 1);
}
TEST_F(LeaversTest, ThisRankIsNone) {
  control_.left[1] = 0;
  EXPECT_THAT(all(), IsEmpty());
}
TEST_F(LeaversTest, AnEndCountsFromTheNextStepOn) {
  observer_.goneRanks = {12};
  EXPECT_THAT(all(), IsEmpty());
  leavers_.lookForEnds();
  EXPECT_THAT(all(), ElementsAre(2));
  EXPECT_THAT(all(1), IsEmpty()) << "what runs is the engine's to judge";
}
TEST_F(LeaversTest, TheEndsOfOthersAreNobodysHere) {
  observer_.goneRanks = {99};
  leavers_.lookForEnds();
  EXPECT_THAT(all(), IsEmpty());
  observer_.goneRanks.insert(10);
  leavers_.lookForEnds();
  EXPECT_THAT(all(), ElementsAre(0));
}
TEST_F(LeaversTest, BetweenMachinesAnEndMayComeBeforeTheLastWords) {
  conductor::Leavers between(control_, three(), observer_, false);
  observer_.goneRanks = {12};
  between.lookForEnds();
  EXPECT_FALSE(between.any(std::nullopt, [](int) { return true; }));
}

}  // namespace
}  // namespace farandole::test
