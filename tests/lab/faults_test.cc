// Machines, links and processes that fail in the middle of a job: it ends soon, says why, and
// leaves nothing anywhere.
#include <signal.h>

#include "lab/job.h"

namespace farandole::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(LabFaults, LauncherKilled) {
  LAB_OR_SKIP();
  const Lab lab;
  const auto job = longJob(lab, {"-H", "h0:1,h1:2,h2:1"}, 4);
  job->signal(SIGKILL);
  expectNothingLeft(lab, 3);
}

TEST(LabFaults, LauncherKilledWhileItConnectsAndPushes) {
  LAB_OR_SKIP();
  const Lab lab;
  lab.must("rate", {"h1", "20mbit"});
  lab.must("port", {"h2", "12345", "drop"});
  const auto job = startJob(lab, {"--push", "-H", "h1:1,h2:1"}, "true");
  ASSERT_TRUE(waitUntil(seconds(20), [&] {
    return lab.shell("h1", "ls /root/.cache/farandole/.new.*/*").code == 0;
  }));
  job->signal(SIGKILL);
  expectNothingLeft(lab, 3);
  EXPECT_EQ(lab.shell("h1", "ls -A /root/.cache/farandole").out, "");
}

// Nobody tells the other side that the cable is out; it must find out by itself.
TEST(LabFaults, LinkCutWhileItPushes) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 2});
  lab.must("rate", {"h1", "20mbit"});
  const auto job = startJob(lab, {"--push", "-H", "h1:1"}, "true");
  ASSERT_TRUE(waitUntil(seconds(20), [&] {
    return lab.shell("h1", "ls /root/.cache/farandole/.new.*/*").code == 0;
  }));
  lab.cut("h1");
  const Outcome outcome = job->finish();
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("host h1: the connection"));
  lab.heal("h1");
  expectNothingLeft(lab, 2, seconds(75));
  EXPECT_EQ(lab.shell("h1", "ls -A /root/.cache/farandole").out, "");
}

TEST(LabFaults, AgentKilled) {
  LAB_OR_SKIP();
  const Lab lab;
  const auto job = longJob(lab, {"-H", "h0:1,h1:2,h2:1"}, 4);
  ASSERT_EQ(lab.shell("h1", "kill -9 " + agentOn(lab, "h1")).code, 0);
  const Outcome outcome = job->finish();
  EXPECT_FALSE(outcome.timedOut);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("host h1: the connection to its agent broke"));
  EXPECT_THAT(outcome.err,
              HasSubstr("first cause: ranks 1, 2 on h1 are out of reach: their host was lost"));
  EXPECT_THAT(outcome.err, HasSubstr("the others at that moment:\n    ranks 0, 3: "));
  expectNothingLeft(lab, 3);
}

TEST(LabFaults, ConnectionKilled) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 2});
  const auto job = longJob(lab, {"-H", "h0:1,h1:1"}, 2);
  const std::string agent = agentOn(lab, "h1");
  // Its parent is the sshd of this one connection.
  ASSERT_EQ(lab.shell("h1", "kill -9 $(cut -d' ' -f4 /proc/" + agent + "/stat)").code, 0);
  const Outcome outcome = job->finish();
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("host h1: "));
  expectNothingLeft(lab, 2);
}

TEST(LabFaults, OwnSshKilled) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 2});
  const auto job = longJob(lab, {"-H", "h0:1,h1:1"}, 2);
  ASSERT_EQ(lab.shell("h0", "kill -9 " + pidOn(lab, "h0", "ssh ")).code, 0);
  const Outcome outcome = job->finish();
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("host h1: "));
  expectNothingLeft(lab, 2);
}

TEST(LabFaults, LinkCut) {
  LAB_OR_SKIP();
  const Lab lab;
  const auto job = longJob(lab, {"-H", "h0:1,h1:1,h2:1"}, 3);
  const auto begin = std::chrono::steady_clock::now();
  lab.cut("h1");
  const Outcome outcome = job->finish();
  // 8 s of silence and then the others' end; generous because the machine may be busy.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(20));
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("host h1: nothing has been heard from it for 8 s"));
  EXPECT_THAT(outcome.err, HasSubstr("rank 1 on h1"));
  expectNothingLeft(lab, 3);
  lab.heal("h1");
  expectNothingLeft(lab, 3);
  EXPECT_EQ(runJob(lab, {"-q", "-H", "h0:1,h1:1,h2:1"}, "true").code, 0);
}

TEST(LabFaults, ShortCutsAndLossAreNoFaults) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 3});
  lab.must("loss", {"h2", "3"});
  const auto job = longJob(lab, {"-H", "h0:1,h1:1,h2:1"}, 3,
                           "echo ready $RANK; for i in $(seq 70); do echo line $i of $RANK; sleep "
                           "0.1; done; echo complete $RANK");
  lab.cut("h1");
  pause(seconds(2));
  lab.heal("h1");
  const Outcome outcome = job->finish();
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(countOf(outcome.out, "line "), 3 * 70);
  EXPECT_EQ(countOf(outcome.out, "complete"), 3);
  expectNothingLeft(lab, 3);
}

TEST(LabFaults, StoppedLauncherIsWaitedFor) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 2});
  const auto job = longJob(lab, {"-H", "h0:1,h1:1"}, 2,
                           "echo ready $RANK; i=0; while [ $i -lt 30 ]; do sleep 0.1; i=$((i+1)); "
                           "done; echo complete $RANK");
  job->signal(SIGTSTP);
  ASSERT_TRUE(waitUntil(seconds(5), [&] { return processState(job->pid()) == 'T'; }));
  pause(seconds(11));
  EXPECT_FALSE(lab.processes("h1").empty());
  job->signal(SIGCONT);
  const Outcome outcome = job->finish();
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(countOf(outcome.out, "complete"), 2);
  expectNothingLeft(lab, 2);
}

TEST(LabFaults, FrozenLauncherIsNot) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 2});
  const auto job = longJob(lab, {"-H", "h0:1,h1:1"}, 2);
  job->signal(SIGSTOP);
  EXPECT_THAT(lab.processesAfter("h1", seconds(20)), IsEmpty());
  job->signal(SIGCONT);
  const Outcome outcome = job->finish();
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("host h1: "));
  expectNothingLeft(lab, 2);
}

TEST(LabFaults, FrozenAgent) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 2});
  const auto job = longJob(lab, {"-H", "h0:1,h1:1"}, 2);
  const std::string agent = agentOn(lab, "h1");
  ASSERT_EQ(lab.shell("h1", "kill -STOP " + agent).code, 0);
  const Outcome outcome = job->finish();
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("host h1: nothing has been heard from it"));
  ASSERT_EQ(lab.shell("h1", "kill -CONT " + agent).code, 0);
  expectNothingLeft(lab, 2);
}

}  // namespace
}  // namespace farandole::test
