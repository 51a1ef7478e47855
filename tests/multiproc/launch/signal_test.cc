// What the launcher does with its own signals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "multiproc/launch/command.h"

namespace farandole::test {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kObedient =
    "trap 'echo got INT; exit 0' INT; trap 'echo got TERM; exit 0' TERM; echo ready; "
    "while :; do sleep 0.05; done";
constexpr const char* kStubborn = "trap '' INT TERM; echo pid $$; while :; do sleep 0.05; done";

TEST(LaunchSignals, EachIsForwardedOnceAndBecomesTheCode) {
  const struct {
    int signal;
    const char* seen;
    int code;
  } kCases[] = {{SIGINT, "got INT", 130}, {SIGTERM, "got TERM", 143}, {SIGHUP, "got TERM", 129}};
  for (const auto& [signal, seen, code] : kCases) {
    Command command(shellJob(2, kObedient));
    ASSERT_TRUE(command.waitForOutput("ready", 2));
    command.signal(signal);
    const Outcome outcome = command.finish();
    EXPECT_EQ(outcome.code, code);
    EXPECT_EQ(countOf(outcome.out, seen), 2) << outcome.out;
    EXPECT_THAT(outcome.err, Not(HasSubstr("the job failed")));
  }
}

TEST(LaunchSignals, TwiceKillsAtOnce) {
  Command command(shellJob(2, kStubborn, {"--grace", "600"}));
  ASSERT_TRUE(command.waitForOutput("pid ", 2));
  command.signal(SIGINT);
  ASSERT_TRUE(command.waitForOutput("once more"));
  command.signal(SIGINT);
  const Outcome outcome = command.finish();
  EXPECT_FALSE(outcome.timedOut);
  EXPECT_EQ(outcome.code, 130);
  for (const pid_t pid : pidsIn(outcome.out)) EXPECT_TRUE(isGone(pid));
}

TEST(LaunchSignals, StubbornRanksAreKilledAfterTheGracePeriod) {
  Command command(shellJob(2, kStubborn, {"--grace", "0.5"}));
  ASSERT_TRUE(command.waitForOutput("pid ", 2));
  command.signal(SIGTERM);
  const Outcome outcome = command.finish();
  EXPECT_FALSE(outcome.timedOut);
  EXPECT_EQ(outcome.code, 143);
}

TEST(LaunchSignals, ControlCOnATerminal) {
  Command::Options terminal;
  terminal.terminal = true;
  Command command(shellJob(2, kObedient), terminal);
  ASSERT_TRUE(command.waitForOutput("ready", 2));
  command.type("\003");
  const Outcome outcome = command.finish();
  EXPECT_EQ(outcome.code, 130);
  EXPECT_EQ(countOf(outcome.out, "got INT"), 2) << outcome.out;
}

TEST(LaunchSignals, StopAndContinueReachTheRanks) {
  // exec: a shell that is stopped while it starts a child may hang in vfork, not in state T.
  Command command(shellJob(2, "echo pid $$; exec sleep 300"));
  ASSERT_TRUE(command.waitForOutput("pid ", 2));
  const auto pids = pidsIn(command.out());
  const auto allStopped = [&] {
    return processState(command.pid()) == 'T' && processState(pids[0]) == 'T' &&
           processState(pids[1]) == 'T';
  };
  command.signal(SIGTSTP);
  EXPECT_TRUE(waitUntil(std::chrono::seconds(10), allStopped));
  command.signal(SIGCONT);
  EXPECT_TRUE(waitUntil(std::chrono::seconds(10), [&] {
    return processState(pids[0]) != 'T' && processState(pids[1]) != 'T';
  }));
  command.signal(SIGTERM);
  EXPECT_EQ(command.finish().code, 143);
}

// The launcher blocks signals and ignores SIGPIPE for itself; ranks must not inherit that.
TEST(LaunchSignals, RanksStartWithOrdinarySignals) {
  const Outcome outcome =
      runCommand(shellJob(1, "grep -E 'SigBlk|SigIgn' /proc/self/status", {"--no-prefix"}));
  // Signals 1 to 31: glibc's posix_spawn leaves its own signal 32 ignored in whatever make starts.
  constexpr unsigned long kStandard = 0x7fffffff;
  for (const std::string mask : {"SigBlk:\t", "SigIgn:\t"}) {
    const auto at = outcome.out.find(mask);
    ASSERT_NE(at, std::string::npos) << outcome.out;
    EXPECT_EQ(std::stoul(outcome.out.substr(at + mask.size()), nullptr, 16) & kStandard, 0U)
        << outcome.out;
  }
}

}  // namespace
}  // namespace farandole::test
