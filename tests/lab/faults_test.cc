// Machines, links and processes that fail in the middle of a job: it ends soon, says why, and
// leaves nothing anywhere.
#include <signal.h>

#include "lab/job.h"

namespace farandole::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// A rank with a child in a session of its own and an orphan; none of them ends by itself.
constexpr const char* kFamily =
    "setsid sleep 301 & (setsid sh -c 'sleep 302 & sleep 303' &) ; echo ready $RANK; exec sleep "
    "304";

// A long job, once all its ranks are there.
std::unique_ptr<LabProcess> longJob(const Lab& lab, const Words& more, int ranks,
                                    const std::string& script = kFamily) {
  Words options{"-q"};
  options.insert(options.end(), more.begin(), more.end());
  auto job = startJob(lab, options, script);
  EXPECT_TRUE(job->waitForOutput("ready", ranks)) << job->err();
  return job;
}

// The number, on its host, of the first process there whose command line begins so.
std::string pidOn(const Lab& lab, const std::string& host, const std::string& part) {
  for (const std::string& line : lab.processes(host)) {
    const auto space = line.find(' ');
    if (line.compare(space + 1, part.size(), part) == 0) return line.substr(0, space);
  }
  ADD_FAILURE() << "no " << part << " on " << host;
  return "0";
}

std::string agentOn(const Lab& lab, const std::string& host) {
  return pidOn(lab, host, FARANDOLE_COMMAND " agent");
}

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
  EXPECT_THAT(outcome.err, ContainsRegex("first cause: rank 1 on h1 .*lost"));
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

TEST(LabFaults, RankKilledHereOrThere) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 2});
  for (const int victim : {0, 1}) {
    const std::string host = "h" + std::to_string(victim);
    const auto job = longJob(lab, {"-H", "h0:1,h1:1"}, 2);
    ASSERT_EQ(lab.shell(host, "kill -9 " + pidOn(lab, host, "sleep 304")).code, 0);
    const Outcome outcome = job->finish();
    EXPECT_EQ(outcome.code, 128 + SIGKILL);
    EXPECT_THAT(outcome.err, HasSubstr("first cause: rank " + std::to_string(victim) + " on " +
                                       host + " was killed by signal 9"));
    EXPECT_THAT(outcome.err, HasSubstr("| ready " + std::to_string(victim)));
    expectNothingLeft(lab, 2);
  }
}

TEST(LabFaults, RemoteExitCodeAndLastLines) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 3});
  const Outcome outcome =
      runJob(lab, {"-H", "h0:1,h1:1,h2:1"},
             "setsid sleep 300 & if [ $RANK = 1 ]; then sleep 0.5; seq 100 >&2; "
             "printf 'half a line'; exit 7; fi; exec sleep 300");
  EXPECT_EQ(outcome.code, 7);
  EXPECT_THAT(outcome.err, HasSubstr("first cause: rank 1 on h1 exited with code 7"));
  EXPECT_THAT(outcome.err, HasSubstr("    | 100\n    | half a line\n"));
  EXPECT_THAT(outcome.err, Not(HasSubstr("    | 81\n")));
  EXPECT_EQ(outcome.out, "[1]<stdout>:half a line\n");
  EXPECT_EQ(countOf(outcome.err, "[1]<stderr>:"), 100);
  expectNothingLeft(lab, 3);
}

TEST(LabFaults, StartedAgain) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 2});
  const Outcome outcome = runJob(
      lab, {"-q", "--no-prefix", "--grace", "60", "--max-restarts", "1", "-H", "h0:1,h1:1"},
      "echo try $TORCHELASTIC_RESTART_COUNT/$TORCHELASTIC_MAX_RESTARTS of $RANK; if "
      "[ $TORCHELASTIC_RESTART_COUNT = 0 ]; then [ $RANK = 1 ] && exit 3; exec sleep 300; fi");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("try 0/1 of 1\n"), HasSubstr("try 1/1 of 0\n"),
                                 HasSubstr("try 1/1 of 1\n")));
  EXPECT_THAT(outcome.err, HasSubstr("starting the job again (1 of 1)"));
  // Its ranks can be asked to end, like those of the first try.
  const Outcome hopeless =
      runJob(lab, {"-q", "--grace", "60", "--max-restarts", "1", "-H", "h0:1,h1:1"},
             "[ $RANK = 0 ] || exit 5; exec sleep 300");
  EXPECT_EQ(hopeless.code, 5);
  expectNothingLeft(lab, 2);
  // And are guarded like those.
  const auto job =
      longJob(lab, {"--max-restarts", "1", "-H", "h0:1,h1:1"}, 2,
              "[ $TORCHELASTIC_RESTART_COUNT = 1 ] || exit 5; " + std::string(kFamily));
  job->signal(SIGKILL);
  expectNothingLeft(lab, 2);
}

TEST(LabFaults, InterruptedOnceAndTwice) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 2});
  const auto polite = longJob(lab, {"-H", "h0:1,h1:1"}, 2,
                              "trap 'echo saved $RANK; exit 0' INT; setsid sleep 300 & echo ready; "
                              "while :; do sleep 0.1; done");
  polite->signal(SIGINT);
  const Outcome saved = polite->finish();
  EXPECT_EQ(saved.code, 128 + SIGINT);
  EXPECT_EQ(countOf(saved.out, "saved"), 2) << saved.err;
  expectNothingLeft(lab, 2);

  const auto stubborn = longJob(lab, {"--grace", "60", "-H", "h0:1,h1:1"}, 2,
                                "trap '' INT TERM; echo ready; while :; do sleep 0.1; done");
  stubborn->signal(SIGINT);
  pause(milliseconds(500));
  EXPECT_FALSE(lab.processes("h1").empty());
  stubborn->signal(SIGINT);
  const Outcome hard = stubborn->finish();
  EXPECT_FALSE(hard.timedOut);
  EXPECT_EQ(hard.code, 128 + SIGINT);
  expectNothingLeft(lab, 2);
}

TEST(LabFaults, InterruptedWhileItStarts) {
  LAB_OR_SKIP();
  const Lab lab;
  lab.writeFile("h2", "/root/.bashrc", "sleep 3\n");
  const auto job = startJob(lab, {"-v", "-H", "h0:1,h1:1,h2:1"}, "touch /tmp/begun; sleep 300");
  ASSERT_TRUE(job->waitForOutput("host h1 is ready")) << job->err();
  job->signal(SIGINT);
  const Outcome outcome = job->finish();
  EXPECT_EQ(outcome.code, 128 + SIGINT);
  EXPECT_THAT(outcome.err, Not(HasSubstr("warning")));
  expectNothingLeft(lab, 3);
  EXPECT_EQ(lab.run("h1", {"test", "-e", "/tmp/begun"}).code, 1);
}

TEST(LabFaults, WhatRanksLeaveBehindIsEnded) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 2});
  const Outcome outcome =
      runJob(lab, {"--grace", "1", "-H", "h0:1,h1:1"},
             "setsid sleep 301 >/dev/null 2>&1 & (setsid sh -c 'trap \"\" TERM; sleep 302; sleep "
             "303' & ); (env -i setsid sleep 305 &); exit 0");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, ContainsRegex("ended [0-9] processes .*left behind on h1"));
  EXPECT_THAT(lab.processes("h0"), IsEmpty());
  EXPECT_THAT(lab.processes("h1"), IsEmpty());
}

TEST(LabFaults, NoSecretForOthers) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 2});
  const auto job = longJob(lab, {"-v", "-H", "h0:1,h1:1"}, 2,
                           "echo secret=$FARANDOLE_SECRET; echo ready; exec sleep 300");
  const auto at = job->out().find("secret=");
  ASSERT_NE(at, std::string::npos);
  const std::string secret = job->out().substr(at + 7, 64);
  ASSERT_EQ(secret.find_first_not_of("0123456789abcdef"), std::string::npos);
  for (const char* host : {"h0", "h1"}) {
    // The secret comes through a file, so that the search does not find itself.
    lab.writeFile(host, "/tmp/secret", secret);
    EXPECT_EQ(lab.shell(host, "grep -alFf /tmp/secret /proc/[0-9]*/cmdline").out, "") << host;
    EXPECT_EQ(linesOf(lab.shell(host, "grep -alFf /tmp/secret /proc/[0-9]*/environ").out).size(),
              1U)
        << host;
    EXPECT_EQ(
        lab.shell(host, "grep -rlFf /tmp/secret /run /root /dev/shm /tmp --exclude=secret").out, "")
        << host;
  }
  job->signal(SIGTERM);
  const Outcome outcome = job->finish();
  EXPECT_THAT(outcome.err, Not(HasSubstr(secret)));
  expectNothingLeft(lab, 2);
  const Outcome dry = runJob(lab, {"--dry-run", "-v", "-H", "h0:1,h1:1"}, "true");
  EXPECT_EQ(dry.code, 0) << dry.err;
  EXPECT_THAT(dry.out, Not(ContainsRegex("[0-9a-f]{64}")));
  EXPECT_THAT(dry.err, Not(ContainsRegex("[0-9a-f]{64}")));
}

}  // namespace
}  // namespace farandole::test
