// Exit codes, the first cause and its screen.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "launch/supervise/first_cause.h"
#include "multiproc/launch/command.h"
#include "paths.h"

namespace farandole::test {
namespace {

using bootstrap::RankEnd;
using launch::supervise::FirstCause;

using testing::HasSubstr;
using testing::Not;

TEST(LaunchFailure, CodeOfTheFailingRankIsTheCodeOfTheJob) {
  const Outcome outcome = runCommand(shellJob(3, "[ $RANK = 1 ] && exit 42; sleep 60"));
  EXPECT_EQ(outcome.code, 42);
  EXPECT_THAT(outcome.err, HasSubstr("first cause: rank 1 on "));
  EXPECT_THAT(outcome.err, HasSubstr("exited with code 42"));
}

TEST(LaunchFailure, SignalIsNamedAndBecomesTheCode) {
  const Outcome outcome = runCommand(shellJob(2, "[ $RANK = 1 ] && kill -SEGV $$; sleep 60"));
  EXPECT_EQ(outcome.code, 128 + SIGSEGV);
  EXPECT_THAT(outcome.err, HasSubstr("signal 11 (Segmentation fault)"));
}

TEST(LaunchFailure, ScreenHoldsTheLastTwentyLinesOfBothStreams) {
  const Outcome outcome = runCommand(shellJob(
      2,
      "if [ $RANK = 0 ]; then sleep 60; fi; "
      "for i in $(seq 100 128); do echo line $i; done; sleep 0.3; echo to stderr >&2; sleep 0.3; "
      "printf 'no newline'; exit 9"));
  EXPECT_EQ(outcome.code, 9);
  EXPECT_EQ(countOf(outcome.err, "the job failed"), 1);
  EXPECT_THAT(outcome.err, HasSubstr("| line 128\n    | to stderr\n    | no newline\n"));
  EXPECT_THAT(outcome.err, HasSubstr("| line 111\n"));
  EXPECT_THAT(outcome.err, Not(HasSubstr("| line 110\n")));
}

TEST(LaunchFailure, ScreenTellsWhatTheOthersWaitedFor) {
  Command command(
      {"run", "-np", "3", "sh", "-c",
       "if [ $RANK = 2 ]; then echo pid $$; exec " + std::string(test::paths::kLaunchActor) +
           " wait 'computing'; fi; "
           "exec " +
           std::string(test::paths::kLaunchActor) + " wait \"waiting for allreduce 'grad.7'\""});
  ASSERT_TRUE(command.waitForOutput("waiting\n", 3)) << command.err();
  const auto pids = pidsIn(command.out());
  ASSERT_EQ(pids.size(), 1U) << command.out();
  ::kill(pids[0], SIGKILL);
  const Outcome outcome = command.finish();
  EXPECT_EQ(outcome.code, 128 + SIGKILL);
  EXPECT_THAT(outcome.err, HasSubstr("first cause: rank 2"));
  EXPECT_THAT(outcome.err, HasSubstr("ranks 0, 1: waiting for allreduce 'grad.7'"));
}

TEST(LaunchFailure, RankThatFailsBecauseOfAnotherIsNotBlamed) {
  const Outcome outcome =
      runCommand(shellJob(2,
                          "if [ $RANK = 1 ]; then sleep 0.3; exit 3; fi; trap 'exit 7' TERM; "
                          "while :; do sleep 0.05; done"));
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("first cause: rank 1"));
}

TEST(LaunchFailure, RanksThatIgnoreTheRequestAreKilledAfterTheGracePeriod) {
  const Outcome outcome = runCommand(
      shellJob(2,
               "if [ $RANK = 1 ]; then sleep 0.3; exit 3; fi; trap '' TERM; echo pid $$; "
               "while :; do sleep 0.05; done",
               {"--grace", "0.5"}));
  EXPECT_FALSE(outcome.timedOut);
  EXPECT_EQ(outcome.code, 3);
  for (const pid_t pid : pidsIn(outcome.out)) EXPECT_TRUE(isGone(pid));
}

TEST(LaunchFailure, SixtyFourRanks) {
  const Outcome outcome = runCommand({"run", "-q", "-np", "64", "true"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err, "");
}

TEST(LaunchFailure, FileThatIsNoProgramIsExplained) {
  TemporaryFolder folder;
  folder.write("thing", "echo no interpreter line\n", true);
  const Outcome outcome = runCommand({"run", "-np", "2", folder.path() + "/thing"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("name its interpreter"));
}

RankEnd exited(int rank, int code) { return {rank, "alpha", false, code, ""}; }
RankEnd killed(int rank, int signal) { return {rank, "alpha", true, signal, ""}; }

TEST(FirstCause, EarliestWins) {
  FirstCause cause;
  const TimePoint now = Clock::now();
  cause.observe(exited(2, 0), now, false);
  EXPECT_FALSE(cause.get());
  EXPECT_EQ(cause.exitCode(), 0);
  cause.observe(exited(1, 3), now, false);
  cause.observe(exited(0, 4), now, false);
  EXPECT_EQ(cause.get()->rank, 1);
  EXPECT_EQ(cause.exitCode(), 3);
}

TEST(FirstCause, FatalSignalSeenShortlyAfterAnExitIsPreferred) {
  FirstCause cause;
  const TimePoint now = Clock::now();
  cause.observe(exited(1, 1), now, false);
  cause.observe(killed(0, SIGKILL), now + std::chrono::milliseconds(150), false);
  EXPECT_EQ(cause.get()->rank, 0);
  EXPECT_EQ(cause.exitCode(), 137);
  // The first of two signals stays.
  cause.observe(killed(2, SIGSEGV), now + std::chrono::milliseconds(160), false);
  EXPECT_EQ(cause.get()->rank, 0);
}

TEST(FirstCause, ConsequencesAreNotPreferred) {
  const TimePoint now = Clock::now();
  const struct {
    RankEnd end;
    int after;
    bool ordered;
  } kCases[] = {{killed(0, SIGKILL), 400, false},  // too late
                {killed(0, SIGABRT), 10, false},   // an uncaught exception
                {killed(0, SIGTERM), 10, true},    // our request
                {killed(0, SIGKILL), 10, true}};   // our last word
  for (const auto& [end, after, ordered] : kCases) {
    FirstCause cause;
    cause.observe(exited(1, 1), now, false);
    cause.observe(end, now + std::chrono::milliseconds(after), ordered);
    EXPECT_EQ(cause.get()->rank, 1) << end.code << " after " << after;
  }
}

}  // namespace
}  // namespace farandole::test
