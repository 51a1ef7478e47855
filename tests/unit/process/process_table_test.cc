#include "process/process_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "process/process_limits.h"

namespace farandole::process {
namespace {

using testing::HasSubstr;

// A process that waits to be ended; with this number, if that may be chosen.
pid_t startSleeper(pid_t number = 0) {
  clone_args args{};
  args.exit_signal = SIGCHLD;
  args.set_tid = number > 0 ? reinterpret_cast<std::uintptr_t>(&number) : 0;
  args.set_tid_size = number > 0 ? 1 : 0;
  const auto pid = static_cast<pid_t>(::syscall(SYS_clone3, &args, sizeof(args)));
  while (pid == 0) ::pause();
  return pid;
}

void endAndReap(pid_t pid) {
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
}

TEST(ProcessTable, SignalReachesTheProcessThatWasMeant) {
  const pid_t pid = startSleeper();
  ASSERT_GT(pid, 0);
  EXPECT_FALSE(signalProcess(pid, SIGKILL, [](pid_t) { return false; }));
  EXPECT_TRUE(signalProcess(pid, SIGKILL, [](pid_t) { return true; }));
  int status = 0;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
}

TEST(ProcessTable, SignalDoesNotReachTheNextOwnerOfANumber) {
  const pid_t first = startSleeper();
  ASSERT_GT(first, 0);
  pid_t second = -1;
  EXPECT_FALSE(signalProcess(first, SIGKILL, [&](pid_t) {
    endAndReap(first);
    second = startSleeper(first);  // needs root; without, nobody has the number
    return true;
  }));
  if (second < 0) return;
  EXPECT_EQ(second, first);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(second), &info, WEXITED | WNOHANG | WNOWAIT), 0);
  EXPECT_EQ(info.si_pid, 0) << "it has been killed";
  endAndReap(second);
}

TEST(ProcessTable, ListsOwnChildrenUntilTheyAreReaped) {
  const pid_t pid = startSleeper();
  ASSERT_GT(pid, 0);
  const auto listed = [&] {
    const auto all = ownChildren();
    return std::find(all.begin(), all.end(), pid) != all.end();
  };
  EXPECT_TRUE(listed());
  EXPECT_TRUE(descendsFrom(pid, ::getpid()));
  ::kill(pid, SIGKILL);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(listed());
  endAndReap(pid);
  EXPECT_FALSE(listed());
}

TEST(ProcessLimits, RefusalNamesTheLimit) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NPROC, &before), 0);
  const rlimit few{std::min<rlim_t>(23456, before.rlim_max), before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NPROC, &few), 0);
  const Status status = cannotStartProcess("cannot create a process", EAGAIN);
  ::setrlimit(RLIMIT_NPROC, &before);
  EXPECT_THAT(status.message(), HasSubstr("cannot create a process: Resource temporarily"));
  EXPECT_THAT(status.message(), HasSubstr("`ulimit -u` allows (" + std::to_string(few.rlim_cur)));
  EXPECT_EQ(cannotStartProcess("x", ENOMEM).message().find("ulimit"), std::string::npos);
}

}  // namespace
}  // namespace farandole::process
