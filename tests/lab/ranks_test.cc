// Ranks that end, are ended, interrupted and started again on several machines, and what they know
// that others must not.
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

TEST(LabRanks, RankKilledHereOrThere) {
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

TEST(LabRanks, RemoteExitCodeAndLastLines) {
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

TEST(LabRanks, StartedAgain) {
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

TEST(LabRanks, InterruptedOnceAndTwice) {
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

TEST(LabRanks, InterruptedWhileItStarts) {
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

TEST(LabRanks, WhatRanksLeaveBehindIsEnded) {
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

TEST(LabRanks, NoSecretForOthers) {
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
