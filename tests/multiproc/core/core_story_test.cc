// FARANDOLE_LOG_LEVEL=debug tells the life of a job, in its order; without it nothing is said.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "multiproc/core/job.h"

namespace farandole::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const Job::Environment kTold{{"FARANDOLE_LOG_LEVEL", "debug"}};

// Empty if the output has these texts in this order; otherwise the first that is missing.
std::string missingIn(const std::string& output, const std::vector<std::string>& texts) {
  std::size_t from = 0;
  for (const std::string& text : texts) {
    const auto found = output.find(text, from);
    if (found == std::string::npos) return text + "\n--- is not, or not there, in ---\n" + output;
    from = found + text.size();
  }
  return "";
}

std::string line(int rank, const std::string& text) {
  return "farandole[" + std::to_string(rank) + "] debug: " + text;
}

TEST(Story, OfALifeOnOneMachine) {
  Job job({3, {"set_changes"}, kTold});
  const auto results = job.finish();
  ASSERT_EQ(troubleWith(results), "");
  for (int rank = 0; rank < 3; ++rank) {
    const std::string& output = results[static_cast<std::size_t>(rank)].output;
    const std::string place =
        "joins epoch 1: rank " + std::to_string(rank) + " of 3, local rank " + std::to_string(rank);
    EXPECT_EQ(missingIn(output, {line(rank, "connected with the agent on "), line(rank, place),
                                 line(rank, "met all 3 ranks of this machine"),
                                 line(rank, "mapped the shared memory of 3 ranks"),
                                 line(rank, "needs no connections"),
                                 line(rank, "built process set 0 of ranks 0-2, in shared memory"),
                                 line(rank, "removed process set 1"),
                                 line(rank,
                                      "process set 0: all members agree on 'world': "
                                      "allreduce of float32 [1]"),
                                 line(rank, "leaves epoch 1"),
                                 line(rank, "shuts down with 0 operations in flight"),
                                 line(rank, "process set 0: this rank leaves, with 0 operations"),
                                 line(rank, "has left epoch 1")}),
              "");
  }
  // Rank 0 is not in the first set that is added, in which "inner" runs twice.
  for (int rank = 1; rank < 3; ++rank) {
    const std::string& output = results[static_cast<std::size_t>(rank)].output;
    const std::string agreed = line(rank, "process set 1: all members agree on 'inner': ");
    EXPECT_EQ(missingIn(output, {line(rank, "built process set 1 of ranks 1, 2"), agreed,
                                 line(rank, "process set 1: this rank leaves"),
                                 line(rank, "removed process set 1")}),
              "");
    EXPECT_EQ(output.find(agreed, output.find(agreed) + 1), std::string::npos) << output;
  }
}

TEST(Story, OfARefusal) {
  Job job({2, {"mismatch", "dtype"}, kTold});
  const auto results = job.finish();
  ASSERT_EQ(troubleWith(results), "");
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(missingIn(results[static_cast<std::size_t>(rank)].output,
                        {line(rank, "process set 0: all members agree on 'x': "),
                         line(rank, "process set 0: refused 'x': ranks disagree about 'x'; dtype"),
                         line(rank, "process set 0: all members agree on 'y': ")}),
              "");
  }
}

TEST(Story, OfRanksThatJoin) {
  Job job({2, {"join_uneven"}, kTold});
  const auto results = job.finish();
  ASSERT_EQ(troubleWith(results), "");
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(missingIn(results[static_cast<std::size_t>(rank)].output,
                        {line(rank, "process set 0: this rank has joined"),
                         line(rank, "process set 0: all members have joined, the last was rank "),
                         line(rank, "process set 0: this rank has joined")}),
              "");
  }
}

TEST(Story, OfAnOperationThatIsCancelled) {
  Job job({2, {"cancel", "0"}, kTold});
  const auto results = job.finish();
  ASSERT_EQ(troubleWith(results), "");
  EXPECT_THAT(results[0].output, HasSubstr(line(0, "process set 0: withdrew '")));
  EXPECT_THAT(results[1].output, HasSubstr("was cancelled by rank 0"));
}

TEST(Story, OfARankThatLeavesWhileItIsNeeded) {
  Job job({2, {"early_shutdown"}, kTold});
  const auto results = job.finish();
  ASSERT_EQ(troubleWith(results), "");
  EXPECT_EQ(missingIn(results[1].output,
                      {line(1, "shuts down with 0 operations in flight"),
                       line(1, "process set 0: this rank leaves"), line(1, "has left epoch 1")}),
            "");
  EXPECT_EQ(
      missingIn(results[0].output, {line(0, "process set 0: ends because of rank 1: rank 1 on "),
                                    line(0, "shuts down with 0 operations in flight")}),
      "");
}

TEST(Story, OfConnections) {
  Job::Environment environment = kTold;
  environment["FARANDOLE_HIERARCHY"] = "off";
  Job job({2, {"random_order", "5", "2"}, environment});
  const auto results = job.finish();
  ASSERT_EQ(troubleWith(results), "");
  for (int rank = 0; rank < 2; ++rank) {
    const std::string& output = results[static_cast<std::size_t>(rank)].output;
    EXPECT_EQ(missingIn(output, {line(rank, "listens for other ranks on port "),
                                 line(rank, "knows where all 2 ranks are"), "connected with ",
                                 line(rank, "leaves epoch 1"), line(rank, "says goodbye"),
                                 line(rank, "has left epoch 1")}),
              "");
    EXPECT_THAT(output, HasSubstr("built process set 0 of ranks 0, 1, between machines"));
    const std::string other = std::to_string(1 - rank);
    EXPECT_TRUE(output.find("has connected with rank " + other) != std::string::npos ||
                output.find("was connected with by rank " + other) != std::string::npos)
        << output;
  }
}

TEST(Story, OfALostRank) {
  Job job({2, {"allreduce_until_lost", "ordinary", "alone", "leave", "1"}, kTold});
  ASSERT_TRUE(job.waitForLineEverywhere("ready"));
  job.kill(1, SIGKILL);
  const auto results = job.finish();
  const std::string& output = results[0].output;
  EXPECT_EQ(missingIn(output, {line(0, "rank 1 on "), ") has ended without leaving",
                               line(0, "a rank is lost: rank 1")}),
            "");
  // The driver says so, the other two the watch: in no order.
  EXPECT_EQ(missingIn(output, {line(0, "fails all "), " in flight: rank 1 on ",
                               line(0, "process set 0: this rank leaves")}),
            "");
}

TEST(Story, IsNotToldUnasked) {
  Job job({2, {"random_order", "5", "2"}});
  const auto results = job.finish();
  ASSERT_EQ(troubleWith(results), "");
  for (const auto& result : results) EXPECT_THAT(result.output, Not(HasSubstr("debug:")));
}

}  // namespace
}  // namespace farandole::test
