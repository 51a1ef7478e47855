// Ranks on different machines find each other through their agents and the launcher.
#include <signal.h>

#include "lab/job.h"
#include "paths.h"

namespace farandole::test {
namespace {

using test::paths::kRelayActor;

using std::chrono::seconds;
using testing::HasSubstr;

TEST(LabRelay, RanksMeet) {
  LAB_OR_SKIP();
  const Lab lab;
  const std::pair<const char*, int> jobs[] = {
      {"h0:1,h1:2,h2:1", 4}, {"h1:1,h2:1", 2}, {"h1:1,h0:1", 2}};
  for (const auto& [hosts, ranks] : jobs) {
    const Outcome outcome =
        lab.run("h0", jobWords({"--require-init", "-H", hosts}, {kRelayActor, "meet"}));
    EXPECT_EQ(outcome.code, 0) << hosts << ": " << outcome.out << outcome.err;
    EXPECT_EQ(outcome.err, "");
    EXPECT_EQ(countOf(outcome.out, "met"), ranks);
  }
  const Outcome many =
      lab.run("h0", jobWords({"-H", "h0:2,h1:2,h2:2"}, {kRelayActor, "many", "50"}));
  EXPECT_EQ(many.code, 0) << many.out << many.err;
  expectNothingLeft(lab, 3);
}

// The rank that all the others wait for is killed: on this machine, on another, or its machine is
// lost.
TEST(LabRelay, WaitingRanksHearOfTheDead) {
  LAB_OR_SKIP();
  const Lab lab;
  for (const int victim : {0, 1, 2}) {
    const std::string host = "h" + std::to_string(victim);
    SCOPED_TRACE(host);
    const auto job = lab.start(
        "h0", jobWords({"-H", "h0:1,h1:1,h2:1"}, {kRelayActor, "wait", std::to_string(victim)}));
    ASSERT_TRUE(job->waitForOutput("met pid", 3)) << job->err();
    pause(std::chrono::milliseconds(300));
    const std::string mark = "[" + std::to_string(victim) + "]<stdout>:met pid ";
    const auto at = job->out().find(mark);
    ASSERT_NE(at, std::string::npos);
    const int pid = std::atoi(job->out().c_str() + at + mark.size());
    ASSERT_EQ(lab.shell(host, "kill -9 " + std::to_string(pid)).code, 0);
    const Outcome outcome = job->finish();
    EXPECT_EQ(outcome.code, 128 + SIGKILL);
    const std::string who =
        "rank " + std::to_string(victim) + " on " + host + " was killed by signal 9";
    // Both others were told, long before the grace period was over.
    EXPECT_GE(countOf(outcome.out, who), 2) << outcome.out;
    EXPECT_THAT(outcome.err, HasSubstr("first cause: " + who));
    for (const int other : {0, 1, 2}) {
      if (other == victim) continue;
      EXPECT_THAT(outcome.err,
                  HasSubstr("rank " + std::to_string(other) +
                            ": waiting for the gradient of layer " + std::to_string(other)));
    }
    expectNothingLeft(lab, 3);
  }
}

TEST(LabRelay, OneThatNeverCallsInitIsNamed) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 2});
  // Rank 1 is no distributed program at all: rank 0 must not wait for it for ever.
  const Outcome outcome =
      runJob(lab, {"-H", "h0:1,h1:1"},
             std::string("[ $RANK = 1 ] && exec true; exec ") + kRelayActor + " meet");
  EXPECT_FALSE(outcome.timedOut);
  EXPECT_GT(outcome.code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("rank 1"));
  expectNothingLeft(lab, 2);
}

}  // namespace
}  // namespace farandole::test
