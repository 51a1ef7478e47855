// The agent and the launcher's side of it, without a network: the ssh client is a script that runs
// the remote command here. With real hosts and a real sshd they are tested in tests/lab; this is
// for the sanitizers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "multiproc/launch/command.h"

namespace farandole::test {
namespace {

using ::testing::HasSubstr;

class LaunchAgent : public ::testing::Test {
 protected:
  void SetUp() override {
    // ssh's words: options, "--", host, command.
    folder_.write("ssh",
                  "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done\nshift 2\nexec sh -c \"$1\"\n",
                  /*executable=*/true);
    options_.env = {"FARANDOLE_SSH=" + folder_.path() + "/ssh", "HOME=" + folder_.path(),
                    "XDG_CACHE_HOME=" + folder_.path() + "/cache"};
  }

  std::vector<std::string> job(const std::string& script,
                               const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words{"run", "-q", "-H", "elsewhere.invalid:2"};
    words.insert(words.end(), more.begin(), more.end());
    words.insert(words.end(), {"sh", "-c", script});
    return words;
  }

  TemporaryFolder folder_;
  Command::Options options_;
};

TEST_F(LaunchAgent, OutputAndIdentityArrive) {
  Command command(job("echo out $RANK of $WORLD_SIZE; echo err >&2"), options_);
  const Outcome outcome = command.finish();
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("[0]<stdout>:out 0 of 2\n"));
  EXPECT_THAT(outcome.out, HasSubstr("[1]<stdout>:out 1 of 2\n"));
  EXPECT_EQ(countOf(outcome.err, "<stderr>:err\n"), 2);
}

TEST_F(LaunchAgent, MuchOutputIsWhole) {
  Command command(
      job("i=0; while [ $i -lt 20000 ]; do echo line $i of rank $RANK; i=$((i+1)); done"),
      options_);
  const Outcome outcome = command.finish();
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(countOf(outcome.out, "\n"), 40000);
  EXPECT_EQ(countOf(outcome.out, "[1]<stdout>:line 19999 of rank 1\n"), 1);
}

TEST_F(LaunchAgent, InputReachesRankZero) {
  options_.input = std::string(300000, 'x') + "\n";
  Command command(job("if [ $RANK = 0 ]; then wc -c; fi"), options_);
  EXPECT_THAT(command.finish().out, HasSubstr("[0]<stdout>:300001\n"));
}

TEST_F(LaunchAgent, FailureIsNamedWithItsLastLines) {
  Command command(job("[ $RANK = 1 ] && echo about to fail && exit 7; sleep 60"), options_);
  const Outcome outcome = command.finish();
  EXPECT_EQ(outcome.code, 7);
  EXPECT_THAT(outcome.err, HasSubstr("rank 1 on elsewhere.invalid exited with code 7"));
  EXPECT_THAT(outcome.err, HasSubstr("| about to fail"));
}

TEST_F(LaunchAgent, AgentThatIsKilledTakesItsRanksAlong) {
  Command command(job("echo pid $$; echo agent $PPID; sleep 60"), options_);
  ASSERT_TRUE(command.waitForOutput("agent ", 2));
  const auto ranks = pidsIn(command.out());
  const auto at = command.out().find("agent ") + 6;
  ASSERT_EQ(::kill(std::stoi(command.out().substr(at)), SIGKILL), 0);
  const Outcome outcome = command.finish();
  EXPECT_NE(outcome.code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("host elsewhere.invalid: "));
  for (const pid_t pid : ranks) {
    EXPECT_TRUE(waitUntil(std::chrono::seconds(10), [&] { return isGone(pid); })) << pid;
  }
}

TEST_F(LaunchAgent, GuardianThatIsKilledIsReplaced) {
  Command command(job("echo agent $PPID; sleep 60"), options_);
  ASSERT_TRUE(command.waitForOutput("agent ", 2));
  const pid_t agent = std::stoi(command.out().substr(command.out().find("agent ") + 6));
  pid_t first = -1;
  ASSERT_TRUE(waitUntil(std::chrono::seconds(5), [&] { return (first = guardianOf(agent)) > 0; }));
  ASSERT_EQ(::kill(first, SIGKILL), 0);
  EXPECT_TRUE(waitUntil(std::chrono::seconds(5), [&] {
    const pid_t now = guardianOf(agent);
    return now > 0 && now != first;
  }));
  command.signal(SIGTERM);
  EXPECT_EQ(command.finish().code, 128 + SIGTERM);
}

TEST_F(LaunchAgent, TreeIsPushedAndUsed) {
  options_.patience = std::chrono::seconds(110);  // with a sanitizer the tree has hundreds of MB
  Command command(job("readlink /proc/$PPID/exe", {"--push"}), options_);
  const Outcome outcome = command.finish();
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(countOf(outcome.out, folder_.path() + "/cache/farandole/"), 2) << outcome.out;
}

}  // namespace
}  // namespace farandole::test
