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
                                 line(rank, "removed process set 1"), line(rank, "leaves epoch 1"),
                                 line(rank, "has left epoch 1")}),
              "");
  }
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
  EXPECT_THAT(results[0].output, HasSubstr(line(0, "a rank is lost: rank 1")));
}

TEST(Story, IsNotToldUnasked) {
  Job job({2, {"random_order", "5", "2"}});
  const auto results = job.finish();
  ASSERT_EQ(troubleWith(results), "");
  for (const auto& result : results) EXPECT_THAT(result.output, Not(HasSubstr("debug:")));
}

}  // namespace
}  // namespace farandole::test
