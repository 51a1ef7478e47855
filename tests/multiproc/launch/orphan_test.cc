// Nothing of a job outlives it, however it ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "launch/command.h"

namespace farandole::test {
namespace {

using testing::HasSubstr;
using testing::Not;

// A child, a child in a session of its own, and an orphan in yet another.
constexpr const char* kFamily =
    "sleep 300 & echo pid $!; "
    "setsid sleep 300 & echo pid $!; "
    "(setsid sh -c 'trap \"\" TERM HUP INT; echo pid $$; sleep 300; sleep 300' &) ; "
    "echo pid $$; ";

void expectGone(const std::vector<pid_t>& pids, std::chrono::milliseconds limit) {
  for (const pid_t pid : pids) {
    EXPECT_TRUE(waitUntil(limit, [&] { return isGone(pid); })) << "process " << pid << " lives";
  }
}

TEST(LaunchOrphans, NoneWhenTheLauncherIsKilled) {
  Command command(shellJob(2, std::string(kFamily) + "wait; sleep 300"));
  ASSERT_TRUE(command.waitForOutput("pid ", 8));
  const auto pids = pidsIn(command.out());
  ASSERT_EQ(pids.size(), 8U);
  for (const pid_t pid : pids) ASSERT_FALSE(isGone(pid));
  command.signal(SIGKILL);
  expectGone(pids, std::chrono::seconds(5));
  EXPECT_EQ(command.finish().signal, SIGKILL);
}

TEST(LaunchOrphans, NoneWhenTheLauncherIsKilledWhileProcessesAreStopped) {
  Command command(shellJob(2, std::string(kFamily) + "wait; sleep 300"));
  ASSERT_TRUE(command.waitForOutput("pid ", 8));
  const auto pids = pidsIn(command.out());
  for (const pid_t pid : pids) ::kill(pid, SIGSTOP);
  command.signal(SIGKILL);
  expectGone(pids, std::chrono::seconds(5));
}

// The guardian of the second start guards as well as that of the first.
TEST(LaunchOrphans, NoneWhenTheLauncherOfARestartedJobIsKilled) {
  Command command(shellJob(
      2,
      "test $TORCHELASTIC_RESTART_COUNT = 1 || exit 1; " + std::string(kFamily) + "wait; sleep 300",
      {"--max-restarts", "1"}));
  ASSERT_TRUE(command.waitForOutput("pid ", 8)) << command.err();
  const auto pids = pidsIn(command.out());
  ASSERT_EQ(pids.size(), 8U);
  command.signal(SIGKILL);
  expectGone(pids, std::chrono::seconds(5));
}

TEST(LaunchOrphans, NoneAfterANormalEndAndOneLineSaysSo) {
  const Outcome outcome =
      runCommand(shellJob(2, std::string(kFamily) + "exit 0", {"--grace", "1"}));
  EXPECT_EQ(outcome.code, 0);
  const auto pids = pidsIn(outcome.out);
  ASSERT_EQ(pids.size(), 8U);
  expectGone(pids, std::chrono::milliseconds(100));
  EXPECT_EQ(countOf(outcome.err, "that the ranks had left behind"), 1) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("sleep"));
}

TEST(LaunchOrphans, NoneAfterAFailure) {
  const Outcome outcome = runCommand(
      shellJob(2, std::string(kFamily) + "[ $RANK = 0 ] && exit 5; wait", {"--grace", "1"}));
  EXPECT_EQ(outcome.code, 5);
  expectGone(pidsIn(outcome.out), std::chrono::milliseconds(100));
}

// Not even a cleared environment hides a process from a launcher that lives.
TEST(LaunchOrphans, ProcessesWithoutTheMarkAreFoundByDescent) {
  const Outcome outcome = runCommand(shellJob(
      1, "(env -i setsid sh -c 'echo pid $$; exec sleep 300' &); sleep 0.5", {"--grace", "1"}));
  EXPECT_EQ(outcome.code, 0);
  const auto pids = pidsIn(outcome.out);
  ASSERT_EQ(pids.size(), 1U);
  expectGone(pids, std::chrono::milliseconds(100));
}

TEST(LaunchOrphans, HelpersThatEndByThemselvesAreNotMentioned) {
  const Outcome outcome = runCommand(shellJob(2, "sleep 0.1 & exit 0", {"--grace", "5"}));
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.err, Not(HasSubstr("left behind")));
}

TEST(LaunchOrphans, AJobInsideAJobIsEndedToo) {
  Command command(shellJob(1, "exec " FARANDOLE_COMMAND
                              " run -np 2 sh -c 'echo pid $$; (setsid sleep 300 &); sleep 300'"));
  ASSERT_TRUE(command.waitForOutput("pid ", 2));
  const auto pids = pidsIn(command.out());
  command.signal(SIGKILL);
  expectGone(pids, std::chrono::seconds(5));
}

}  // namespace
}  // namespace farandole::test
