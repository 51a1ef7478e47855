// Ordered operations: in shared memory, where the promise changes nothing, and over connections.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "multiproc/core/job.h"

namespace farandole::test {
namespace {

using ::testing::HasSubstr;

Job::Environment overConnections() {
  return {{"FARANDOLE_HIERARCHY", "off"}, {"FARANDOLE_ENGINE", "link"}};
}

TEST(Ordered, AndOthersAtOnceInSharedMemory) {
  EXPECT_EQ(runCase({2, {"ordered_mixed", "5"}}), "");
}
TEST(Ordered, AndOthersAtOnceOverConnections) {
  EXPECT_EQ(runCase({2, {"ordered_mixed", "5"}, overConnections()}), "");
  EXPECT_EQ(runCase({3, {"ordered_mixed", "5"}, overConnections()}), "");
}

TEST(Ordered, MismatchIsToldToAllRanksAndTheJobGoesOn) {
  EXPECT_EQ(runCase({2, {"mismatch", "shape", "ordered"}}), "");
  for (const char* what : {"dtype", "shape", "op", "root", "scale"}) {
    EXPECT_EQ(runCase({3, {"mismatch", what, "ordered"}, overConnections()}), "");
  }
}
TEST(Ordered, WrongOrderIsToldToAllRanksAndTheJobGoesOn) {
  EXPECT_EQ(runCase({3, {"ordered_misnamed"}, overConnections()}), "");
}

TEST(Ordered, SmallOnSomeRanksOnlyIsAMismatchOnAllAndTheJobGoesOn) {
  EXPECT_EQ(runCase({3, {"ordered_uneven"}}), "");
  for (const int ranks : {2, 3}) {
    EXPECT_EQ(runCase({ranks, {"ordered_uneven"}, overConnections()}), "");
    EXPECT_EQ(runCase({ranks, {"ordered_uneven", "nameless"}, overConnections()}), "");
  }
}
TEST(Ordered, SmallAndLargeInTheWrongOrderFailOnAllRanks) {
  EXPECT_EQ(runCase({3, {"ordered_crossed", "same", "same"}, overConnections()}), "");
  EXPECT_EQ(runCase({3, {"ordered_crossed", "small", "large"}, overConnections()}), "");
}

TEST(Ordered, NamesMayBeInFlightTwiceEverywhere) {
  EXPECT_EQ(runCase({2, {"ordered_twice"}}), "");
  EXPECT_EQ(runCase({2, {"ordered_twice"}, overConnections()}), "");
}

TEST(Ordered, CallsOneAfterTheOther) {
  EXPECT_EQ(runCase({2, {"call", "ordered"}, overConnections()}), "");
  EXPECT_EQ(runCase({3, {"call", "ordered"}, overConnections()}), "");
}
TEST(Ordered, CallsThatEndEarlyGoOn) {
  EXPECT_EQ(runCase({2, {"call_ends_early", "ordered"}, overConnections()}), "");
}

TEST(Ordered, RankThatIsKilledIsNamed) {
  for (const int victim : {0, 1}) {
    Job job({3, {"ordered_wait_for", std::to_string(victim)}, overConnections()});
    ASSERT_TRUE(job.waitForLineEverywhere("ready")) << troubleWith(job.finish());
    job.kill(victim, SIGKILL);
    const auto results = job.finish(std::chrono::seconds(20));
    for (int rank = 0; rank < 3; ++rank) {
      if (rank == victim) continue;
      const auto& result = results[static_cast<std::size_t>(rank)];
      EXPECT_TRUE(result.ended && !result.signalled && result.code == 0) << result.output;
      EXPECT_THAT(result.output, HasSubstr("lost rank=" + std::to_string(victim) + " "));
      EXPECT_THAT(result.output, HasSubstr("signal 9"));
    }
  }
}

TEST(Ordered, RankThatIsLateIsGivenUpAndNamed) {
  auto environment = overConnections();
  environment["FARANDOLE_STALL_SHUTDOWN_SECONDS"] = "1";
  EXPECT_EQ(runCase({3, {"given_up_late_rank", "1", "2500", "ordered"}, environment}), "");
}

TEST(Ordered, RankThatLeavesIsNamedByThoseWhoNeedIt) {
  EXPECT_EQ(runCase({3, {"ordered_leaver"}, overConnections()}), "");
}

}  // namespace
}  // namespace farandole::test
