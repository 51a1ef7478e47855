// Nothing of a job outlives it, however it ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "multiproc/launch/command.h"
#include "paths.h"

namespace farandole::test {
namespace {

using test::paths::kCommand;

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

// Processes that no longer show the job's variable: a cleared environment, and an overwritten one.
const std::string kWithoutVariable = "(env -i setsid sh -c 'echo pid $$; exec sleep 300' &) ; (" +
                                     std::string(test::paths::kLaunchActor) +
                                     " forget &) ; echo pid $$; sleep 300";

TEST(LaunchOrphans, NoneOfThoseWithoutTheVariableWhenTheLauncherIsKilled) {
  Command command(shellJob(2, kWithoutVariable));
  ASSERT_TRUE(command.waitForOutput("pid ", 6)) << command.err();
  const auto pids = pidsIn(command.out());
  command.signal(SIGKILL);
  expectGone(pids, std::chrono::seconds(5));
}

// `farandole` where it cannot create control groups, as in most containers.
std::vector<std::string> withoutControlGroups(const std::vector<std::string>& words) {
  std::vector<std::string> all{"--mount", "sh", "-c",
                               "mount -t tmpfs -o ro none /sys/fs/cgroup && exec \"$0\" \"$@\"",
                               kCommand};
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

TEST(LaunchOrphans, NoneOfThoseWithoutTheVariableAndWithoutControlGroups) {
  Command::Options options;
  options.program = "/usr/bin/unshare";
  Command command(withoutControlGroups(shellJob(2, kWithoutVariable)), options);
  ASSERT_TRUE(command.waitForOutput("pid ", 6)) << command.err();
  const auto pids = pidsIn(command.out());
  for (const pid_t pid : pids) ASSERT_FALSE(isGone(pid));
  command.signal(SIGKILL);
  expectGone(pids, std::chrono::seconds(5));
}

// Where a control group can be created, it finds those who have lost every other mark; and it goes
// with the job, whether the launcher ends or is killed.
TEST(LaunchOrphans, NoneOfThoseWithoutAnyMarkWhereThereAreControlGroups) {
  const std::string script =
      "grep -o '/farandole-.*' /proc/self/cgroup; "
      "(env -i prlimit --locks=7:7 setsid sh -c 'echo pid $$; exec sleep 300' &) ; "
      "echo pid $$; sleep 300";
  Command command(shellJob(1, script, {"--no-prefix"}));
  ASSERT_TRUE(command.waitForOutput("pid ", 2)) << command.err();
  if (command.out().find("farandole-") == std::string::npos) {
    GTEST_SKIP() << "control groups cannot be created here";
  }
  const auto pids = pidsIn(command.out());
  const std::string group = command.out().substr(command.out().find("/farandole-") + 1, 20);
  command.signal(SIGKILL);
  expectGone(pids, std::chrono::seconds(5));
  EXPECT_TRUE(waitUntil(std::chrono::seconds(5), [&] {
    return runProgram("/usr/bin/find", {"/sys/fs/cgroup", "-maxdepth", "8", "-name", group + "*"})
        .out.empty();
  }));
}

TEST(LaunchOrphans, AControlGroupEndsWithItsJob) {
  const Outcome outcome =
      runCommand(shellJob(2, "grep -o 'farandole-.*' /proc/self/cgroup; true", {"--no-prefix"}));
  EXPECT_EQ(outcome.code, 0);
  for (const std::string& group : linesOf(outcome.out)) {
    const std::vector<std::string> find{"/sys/fs/cgroup", "-maxdepth", "8", "-name", group};
    EXPECT_EQ(runProgram("/usr/bin/find", find).out, "");
  }
}

TEST(LaunchOrphans, AGuardianThatIsKilledIsReplaced) {
  Command command(shellJob(2, std::string(kFamily) + "wait; sleep 300"));
  ASSERT_TRUE(command.waitForOutput("pid ", 8));
  const auto pids = pidsIn(command.out());
  pid_t first = -1;
  ASSERT_TRUE(
      waitUntil(std::chrono::seconds(5), [&] { return (first = guardianOf(command.pid())) > 0; }));
  ASSERT_EQ(::kill(first, SIGKILL), 0);
  const auto replaced = [&] {
    const pid_t now = guardianOf(command.pid());
    return now > 0 && now != first;
  };
  EXPECT_TRUE(waitUntil(std::chrono::seconds(5), replaced));
  command.signal(SIGKILL);
  expectGone(pids, std::chrono::seconds(5));
}

// As process 1 of a container. If it took its guardian, or processes that are not of the job, for
// leftovers, it would wait for the grace period.
Outcome runAsProcessOne(const std::string& before, const std::string& job) {
  return runProgram("/usr/bin/unshare",
                    {"--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c",
                     before + "exec " + std::string(kCommand) + " run --grace 100 " + job});
}

TEST(LaunchOrphans, ProcessOneDoesNotWaitForItsGuardian) {
  const Outcome outcome = runAsProcessOne("", "-np 2 true");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, Not(HasSubstr("left behind")));
}

TEST(LaunchOrphans, ProcessOneReapsStrangersAndLeavesThemAlone) {
  const Outcome outcome = runAsProcessOne(
      "(setsid sh -c 'trap \"\" TERM; while :; do sleep 1; done' &) ; (sleep 0.2 &) ; ",
      "-q -np 1 sh -c 'sleep 0.4; while grep -q State:.Z /proc/[0-9]*/status; do sleep 0.05; "
      "done'");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_FALSE(outcome.timedOut);
}

// As with `sleep infinity` as process 1, which reaps nobody.
TEST(LaunchOrphans, NoZombieIsLeftToAProcessOneThatReapsNobody) {
  const std::string run = std::string(kCommand) + " run -q -np 1 ";
  Command::Options options;
  options.program = "/usr/bin/unshare";
  Command command({"--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c",
                   "{ " + run + "true; " + run + "false; " + run +
                       "--no-such-option; sleep 0.3; "
                       "echo zombies $(cat /proc/[0-9]*/status | grep -c State:.Z); } & "
                       "exec sleep 100"},
                  options);
  ASSERT_TRUE(command.waitForOutput("zombies ")) << command.err();
  EXPECT_THAT(command.out(), HasSubstr("zombies 0"));
}

TEST(LaunchOrphans, HelpersThatEndByThemselvesAreNotMentioned) {
  const Outcome outcome = runCommand(shellJob(2, "sleep 0.1 & exit 0", {"--grace", "5"}));
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.err, Not(HasSubstr("left behind")));
}

TEST(LaunchOrphans, AJobInsideAJobIsEndedToo) {
  Command command(
      shellJob(1, "exec " + std::string(kCommand) +
                      " run -np 2 sh -c 'echo pid $$; (setsid sleep 300 &); sleep 300'"));
  ASSERT_TRUE(command.waitForOutput("pid ", 2));
  const auto pids = pidsIn(command.out());
  command.signal(SIGKILL);
  expectGone(pids, std::chrono::seconds(5));
}

}  // namespace
}  // namespace farandole::test
