// A rank that is stopped, or late, is named; and it can come back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "multiproc/core/job.h"

namespace farandole::test {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

// Enough to be stopped in the middle of them.
#if defined(FARANDOLE_ASAN) || defined(FARANDOLE_TSAN)
constexpr char kReductions[] = "20";
#else
constexpr char kReductions[] = "100";
#endif

std::string name(int rank) { return "rank " + std::to_string(rank); }

class Stopped : public ::testing::TestWithParam<int> {};

TEST_P(Stopped, RankIsNamedAndGoesOnWhenContinued) {
  const int victim = GetParam();
  const int reporter = victim == 0 ? 1 : 0;
  Job job({3, {"allreduce_rounds", kReductions}});
  ASSERT_TRUE(job.waitForLineEverywhere("ready"));
  job.kill(victim, SIGSTOP);
  const bool told = job.waitForLine(reporter, name(victim) + " on testhost", 2500ms) &&
                    job.waitForLine(reporter, "is stopped", 2500ms);
  job.kill(victim, SIGCONT);
  const auto results = job.finish();
  EXPECT_TRUE(told) << results[static_cast<std::size_t>(reporter)].output;
  EXPECT_EQ(troubleWith(results), "");
}
INSTANTIATE_TEST_SUITE_P(Victims, Stopped, ::testing::Values(0, 1));

// The one that usually warns, and the one that warns of it.
TEST(StoppedTogether, RanksAreNamedByWhoeverRuns) {
  Job job({3, {"allreduce_rounds", kReductions}});
  ASSERT_TRUE(job.waitForLineEverywhere("ready"));
  for (const int victim : {0, 1}) job.kill(victim, SIGSTOP);
  bool told = true;
  for (const int victim : {0, 1}) {
    told = told && job.waitForLine(2, name(victim) + " on testhost", 2500ms);
  }
  for (const int victim : {0, 1}) job.kill(victim, SIGCONT);
  const auto results = job.finish();
  EXPECT_TRUE(told) << results[2].output;
  EXPECT_EQ(troubleWith(results), "");
}

// A job that is suspended as a whole: nobody is late, whatever the clock says meanwhile.
TEST(Suspended, StallLimitsAndTimeoutsDoNotCountIt) {
  Job job({3, {"patient_rank"}, {{"FARANDOLE_STALL_SHUTDOWN_SECONDS", "3"}}});
  ASSERT_TRUE(job.waitForLineEverywhere("ready"));
  for (int rank = 0; rank < 3; ++rank) job.kill(rank, SIGSTOP);
  std::this_thread::sleep_for(6s);
  // The waiting ones first: they must not judge before the late one can have come.
  for (int rank = 0; rank < 3; ++rank) job.kill(rank, SIGCONT);
  EXPECT_EQ(troubleWith(job.finish()), "");
}

// The moment of the stop is anywhere in the loop: before, inside or after a collective.
class GivenUp : public ::testing::TestWithParam<int> {};

TEST_P(GivenUp, RankWritesIntoNobodysMemoryWhenItWakes) {
  const int victim = GetParam() % 3;
  Job job({3, {"keep_memory_of_a_given_up_job"}, {{"FARANDOLE_STALL_SHUTDOWN_SECONDS", "2"}}});
  ASSERT_TRUE(job.waitForLineEverywhere("ready"));
  std::this_thread::sleep_for(std::chrono::microseconds(1000 + 1700 * GetParam()));
  job.kill(victim, SIGSTOP);
  bool allHold = true;
  for (int rank = 0; rank < 3; ++rank) {
    if (rank != victim) allHold = allHold && job.waitForLine(rank, "holding", 12s);
  }
  job.kill(victim, SIGCONT);
  const auto results = job.finish();
  EXPECT_TRUE(allHold);
  for (int rank = 0; rank < 3; ++rank) {
    const auto& result = results[static_cast<std::size_t>(rank)];
    SCOPED_TRACE(name(rank) + ":\n" + result.output);
    EXPECT_TRUE(result.ended && !result.signalled);
    if (rank == victim) continue;
    EXPECT_EQ(result.code, 0);
    EXPECT_THAT(result.output, HasSubstr("rank=" + std::to_string(victim) + " "));
    EXPECT_THAT(result.output, HasSubstr("unchanged"));
  }
}
INSTANTIATE_TEST_SUITE_P(Moments, GivenUp, ::testing::Range(0, 6));

TEST(Stall, WarningNamesTensorAndRank) {
  Job job({2, {"late_rank", "1", "2500"}, {{"FARANDOLE_STALL_WARNING_SECONDS", "1"}}});
  const auto results = job.finish();
  EXPECT_EQ(troubleWith(results), "");
  EXPECT_THAT(results[0].output, HasSubstr("'gradient/of/layer7'"));
  EXPECT_THAT(results[0].output, HasSubstr("missing from rank(s) 1"));
}

TEST(Stall, WarningIsGivenWhenTheFirstRankIsLate) {
  Job job({2, {"late_rank", "0", "2500"}, {{"FARANDOLE_STALL_WARNING_SECONDS", "1"}}});
  const auto results = job.finish();
  EXPECT_EQ(troubleWith(results), "");
  const std::string both = results[0].output + results[1].output;
  EXPECT_THAT(both, HasSubstr("'gradient/of/layer7'"));
  EXPECT_THAT(both, HasSubstr("rank(s) 0"));
}

class StallLimit : public ::testing::TestWithParam<const char*> {};
TEST_P(StallLimit, EndsTheJobAndNamesTheLateRank) {
  EXPECT_EQ(runCase({3,
                     {"given_up_late_rank", GetParam(), "2500"},
                     {{"FARANDOLE_STALL_SHUTDOWN_SECONDS", "1"}}}),
            "");
}
INSTANTIATE_TEST_SUITE_P(Late, StallLimit, ::testing::Values("0", "1"));

}  // namespace
}  // namespace farandole::test
