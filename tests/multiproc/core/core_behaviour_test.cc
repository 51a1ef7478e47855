// What the library promises while nothing goes wrong outside of the program: one case of core_rank
// each, which checks itself on every rank.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "multiproc/core/job.h"

namespace farandole::test {
namespace {

using ::testing::HasSubstr;

class Mismatch : public ::testing::TestWithParam<const char*> {};
TEST_P(Mismatch, IsToldToAllRanksAndTheJobGoesOn) {
  EXPECT_EQ(runCase({2, {"mismatch", GetParam()}}), "");
  EXPECT_EQ(runCase({3, {"mismatch", GetParam()}}), "");
}
INSTANTIATE_TEST_SUITE_P(Of, Mismatch, ::testing::Values("dtype", "shape", "op", "root", "scale"));

TEST(Names, InFlightTwiceAreRefused) { EXPECT_EQ(runCase({2, {"duplicate_name"}}), ""); }
TEST(Names, InAnyOrderGiveTheRightSums) {
  EXPECT_EQ(runCase({3, {"random_order", "500", "20"}}), "");
}
TEST(Names, BeyondThePlanCapacityGiveTheRightSums) {
  EXPECT_EQ(runCase({3, {"random_order", "100", "20"}, {{"FARANDOLE_PLAN_CAPACITY", "16"}}}), "");
}
TEST(Names, KeepTheirPlansWhenTheirMemoryMoves) { EXPECT_EQ(runCase({2, {"moved_pointers"}}), ""); }
TEST(Groups, RunAsAWholeOrNotAtAll) { EXPECT_EQ(runCase({3, {"groups"}}), ""); }
TEST(Values, AtTheEdgesPass) { EXPECT_EQ(runCase({3, {"edge_values"}}), ""); }
TEST(Join, WithUnevenSteps) { EXPECT_EQ(runCase({3, {"join_uneven"}}), ""); }

TEST(Sets, OverlappingRunAtOnce) { EXPECT_EQ(runCase({3, {"set_ring"}}), ""); }
#ifdef FARANDOLE_HAS_GLOO
TEST(Sets, OverlappingRunAtOnceOnGloo) {
  const Job::Environment onGloo{{"FARANDOLE_HIERARCHY", "off"}, {"FARANDOLE_ENGINE", "gloo"}};
  EXPECT_EQ(runCase({3, {"set_ring", "50000"}, onGloo}), "");
  EXPECT_EQ(runCase({3, {"set_changes"}, onGloo}), "");
}
#endif
TEST(Sets, ComeAndGo) { EXPECT_EQ(runCase({3, {"set_changes"}}), ""); }
TEST(Sets, GiveTheirMemoryBack) {
  EXPECT_EQ(runCase({2, {"sets_give_memory_back", "2500", "32"}}), "");
}
TEST(Sets, GiveTheirMemoryBackBetweenMachines) {
  const Job::Environment onLink{{"FARANDOLE_HIERARCHY", "off"}};
  EXPECT_EQ(runCase({3, {"sets_give_memory_back", "2000", "32"}, onLink}), "");
}
TEST(Sets, DoNotWaitForRanksOutside) {
  Job job({3, {"set_without_outsiders"}});
  ASSERT_TRUE(job.waitForLine(2, "away", kPatience));
  EXPECT_TRUE(job.waitForLine(0, "done", std::chrono::milliseconds(1400)));
  EXPECT_FALSE(job.waitForLine(2, "back", std::chrono::milliseconds::zero()));
  EXPECT_EQ(troubleWith(job.finish()), "");
}

TEST(Life, NothingWorksOutsideOfIt) { EXPECT_EQ(runCase({2, {"outside_of_life"}}), ""); }
TEST(Life, RepeatsThreeHundredTimes) { EXPECT_EQ(runCase({2, {"init_often", "300"}}), ""); }
TEST(Life, EarlyShutdownIsNamed) {
  EXPECT_EQ(runCase({2, {"early_shutdown"}}), "");
  EXPECT_EQ(runCase({3, {"early_shutdown"}}), "");
}
TEST(Life, ForkedChildrenAreNoRanksAndDisturbNobody) {
  EXPECT_EQ(runCase({2, {"forked_children"}}), "");
}
TEST(Life, ChildrenOfForkedChildrenKeepTheirFiles) {
  EXPECT_EQ(runCase({2, {"forked_grandchildren"}}), "");
}

TEST(Wait, TimesOutAndGoesOn) { EXPECT_EQ(runCase({2, {"wait_timeout"}}), ""); }
TEST(Wait, IsInterruptedBySignals) { EXPECT_EQ(runCase({2, {"wait_interrupted"}}), ""); }
TEST(Wait, CostsNoProcessor) { EXPECT_EQ(runCase({2, {"waiting_costs_nothing"}}), ""); }
TEST(Call, OneAfterTheOther) { EXPECT_EQ(runCase({2, {"call", "named"}}), ""); }
TEST(Call, LeavesAResultThatTheLibraryOwns) {
  EXPECT_EQ(runCase({2, {"call_leaves_results"}}), "");
}
TEST(Call, TimesOutAndIsInterruptedAndTheOperationGoesOn) {
  EXPECT_EQ(runCase({2, {"call_ends_early", "named"}}), "");
}
TEST(Call, RefusesWhatItCannotDo) { EXPECT_EQ(runCase({1, {"call_refuses"}}), ""); }
TEST(Call, FromManyThreads) { EXPECT_EQ(runCase({2, {"call_from_threads"}}), ""); }
TEST(Cancel, WithdrawsBeforeTheOthersCome) {
  EXPECT_EQ(runCase({2, {"cancel", "0"}}), "");
  EXPECT_EQ(runCase({3, {"cancel", "1"}}), "");
}
TEST(Completion, CallbacksRunAndNoneAfterShutdown) { EXPECT_EQ(runCase({2, {"callbacks"}}), ""); }
TEST(Completion, CallbacksRunOnWhicheverThreadDrives) {
  EXPECT_EQ(runCase({2, {"callbacks_anywhere"}}), "");
  EXPECT_EQ(runCase({3, {"callbacks_of_many_threads"}}), "");
}
TEST(Completion, CallbacksSubmit) { EXPECT_EQ(runCase({2, {"callbacks_that_submit"}}), ""); }
TEST(Completion, CallbacksEndWithinShutdown) {
  EXPECT_EQ(runCase({2, {"callbacks_at_shutdown"}}), "");
}
TEST(Completion, QueueTellsOfABatch) { EXPECT_EQ(runCase({2, {"completion_queue"}}), ""); }
TEST(Threads, SubmitAndWaitAtOnce) { EXPECT_EQ(runCase({2, {"threads", "4", "500"}}), ""); }
TEST(Messages, AreMatchedBySenderAndTag) { EXPECT_EQ(runCase({3, {"send_and_receive"}}), ""); }

struct BadValue {
  const char* variable;
  const char* value;
  const char* said;  // part of the error's text, besides the variable and its value
};

class Environment : public ::testing::TestWithParam<BadValue> {};
TEST_P(Environment, WithABadValueIsAClearError) {
  const BadValue& bad = GetParam();
  Job job({1, {"init_only"}, {{bad.variable, bad.value}}});
  const auto results = job.finish();
  EXPECT_EQ(troubleWith(results), "");
  EXPECT_THAT(results[0].output, HasSubstr(std::string(bad.variable) + "=" + bad.value));
  EXPECT_THAT(results[0].output, HasSubstr(bad.said));
}
INSTANTIATE_TEST_SUITE_P(
    Variables, Environment,
    ::testing::Values(BadValue{"FARANDOLE_SIZE", "abc", "whole number"},
                      BadValue{"FARANDOLE_SIZE", "0", "whole number"},
                      BadValue{"FARANDOLE_SIZE", "2x", "whole number"},
                      BadValue{"FARANDOLE_RANK", "5", "not below FARANDOLE_SIZE=1"},
                      BadValue{"FARANDOLE_RANK", "-1", "whole number"},
                      BadValue{"FARANDOLE_FUSION_BYTES", "64Q", "bytes"},
                      BadValue{"FARANDOLE_STALL_WARNING_SECONDS", "soon", "seconds"},
                      BadValue{"FARANDOLE_LOG_LEVEL", "loud", "debug, info"}));

TEST(EnvironmentAlone, ASizeWithoutAnAgentSaysWhatToType) {
  Job job({2, {"init_only"}, {{"FARANDOLE_AGENT", ""}}});
  for (const auto& result : job.finish()) {
    EXPECT_THAT(result.output, HasSubstr("farandole run -np 2"));
  }
}

}  // namespace
}  // namespace farandole::test
