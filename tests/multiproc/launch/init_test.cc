// No silent non-distribution.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "multiproc/launch/command.h"
#include "paths.h"

namespace farandole::test {
namespace {

using test::paths::kLaunchActor;

using testing::HasSubstr;
using testing::Not;

constexpr const char* kWarning = "none of the 2 ranks initialised Farandole";

TEST(LaunchInit, IndependentRanksGetOneWarning) {
  const Outcome outcome = runCommand({"run", "-np", "2", "true"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(countOf(outcome.err, kWarning), 1);
  EXPECT_EQ(linesOf(outcome.err).size(), 1U);
}

TEST(LaunchInit, WarningCanBeSilencedOrMadeAnError) {
  EXPECT_EQ(runCommand({"run", "-np", "2", "-q", "true"}).err, "");
  const Outcome required = runCommand({"run", "-np", "2", "--require-init", "true"});
  EXPECT_EQ(required.code, 1);
  EXPECT_THAT(required.err, HasSubstr(kWarning));
  EXPECT_EQ(runCommand({"run", "-np", "1", "true"}).err, "");
}

TEST(LaunchInit, RanksThatInitialiseGetNone) {
  const Outcome outcome = runCommand({"run", "-np", "2", "--require-init", kLaunchActor, "init"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
}

TEST(LaunchInit, RankThatLeavesWhileAnotherIsInsideInitEndsTheJob) {
  // Before the other has come, and after.
  for (const char* delays : {"0 1", "1 0"}) {
    const std::string script = std::string("set -- ") + delays +
                               "; if [ $RANK = 1 ]; then sleep $1; exit 0; fi; sleep $2; exec " +
                               kLaunchActor + " join";
    const Outcome outcome = runCommand(shellJob(2, script));
    EXPECT_EQ(outcome.code, 1);
    EXPECT_THAT(outcome.err,
                HasSubstr("rank 1 exited with code 0 without initialising Farandole, while rank 0 "
                          "is inside init"));
    EXPECT_THAT(outcome.err, Not(HasSubstr("first cause")));
  }
}

TEST(LaunchInit, RankWithAnotherSizeEndsTheJob) {
  const Outcome outcome =
      runCommand(shellJob(2, "[ $RANK = 1 ] && exec " + std::string(kLaunchActor) +
                                 " size 3; exec " + std::string(kLaunchActor) + " join"));
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("rank 1 initialised as one of 3 ranks, but the launcher "
                                     "started 2"));
}

// What torch.distributed does on rank 0 with env://: it opens MASTER_PORT.
TEST(LaunchInit, AStoreOnMasterPortCountsAsInitialised) {
  const Outcome outcome =
      runCommand({"run", "-np", "2", "--require-init", "python3", "-c",
                  "import os, socket, time\n"
                  "s = socket.socket()\n"
                  "if os.environ['RANK'] == '0':\n"
                  "    s.bind(('', int(os.environ['MASTER_PORT']))); s.listen()\n"
                  "time.sleep(1.2)\n"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
}

}  // namespace
}  // namespace farandole::test
