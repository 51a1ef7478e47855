// Time in which this process did not run.
#include "base/suspension.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/process_state.h"

namespace farandole {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Suspension, OnlyWhatIsABeatLateCounts) {
  TimePoint now{};
  Suspension suspension(seconds(1), now);
  EXPECT_EQ(suspension.since(now += seconds(1)), Duration::zero());
  EXPECT_EQ(suspension.since(now += milliseconds(1900)), Duration::zero());
  EXPECT_EQ(suspension.since(now += seconds(12)), seconds(11));
  EXPECT_EQ(suspension.since(now += seconds(1)), Duration::zero());
  suspension.restart(now += seconds(5));
  EXPECT_EQ(suspension.since(now += seconds(1)), Duration::zero());
}

TEST(Suspension, ADeadlineWaitsForWhoeverWasStopped) {
  TimePoint now = Clock::now();
  RunningDeadline deadline(Deadline::after(seconds(3), now), seconds(1));
  EXPECT_FALSE(deadline.passed(now += seconds(1)));
  EXPECT_FALSE(deadline.passed(now += seconds(20)));
  EXPECT_FALSE(deadline.passed(now += milliseconds(500)));
  EXPECT_TRUE(deadline.passed(now += seconds(1)));
  RunningDeadline never(Deadline::never(), seconds(1));
  EXPECT_FALSE(never.passed(now += seconds(100)));
}

TEST(ProcessState, AStoppedProcessStandsStillUntilItIsContinued) {
  const pid_t child = ::fork();
  if (child == 0) {
    for (;;) ::pause();
  }
  siginfo_t info{};
  EXPECT_EQ(standstillOf(child), Standstill::kNone);
  ::kill(child, SIGSTOP);
  ::waitid(P_PID, static_cast<id_t>(child), &info, WSTOPPED);
  EXPECT_EQ(standstillOf(child), Standstill::kSignal);
  ::kill(child, SIGCONT);
  ::waitid(P_PID, static_cast<id_t>(child), &info, WCONTINUED);
  EXPECT_EQ(standstillOf(child), Standstill::kNone);
  ::kill(child, SIGKILL);
  ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED);
  EXPECT_EQ(standstillOf(child), Standstill::kNone);
}

}  // namespace
}  // namespace farandole
