#include "process/bounded_command.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <fstream>
#include <thread>

namespace farandole::process {
namespace bounded_command_test {

Deadline soon() { return Deadline::after(std::chrono::seconds(5)); }

TEST(BoundedCommand, BothStreamsAndTheExitCode) {
  const CommandEnd end = runBounded({"sh", "-c", "echo out; echo err >&2; exit 7"}, soon());
  EXPECT_EQ(end.out, "out\n");
  EXPECT_EQ(end.err, "err\n");
  EXPECT_EQ(end.exitCode, 7);
  EXPECT_FALSE(end.succeeded());
}

TEST(BoundedCommand, ASignalIsNoExitCode) {
  const CommandEnd end = runBounded({"sh", "-c", "kill -9 $$"}, soon());
  EXPECT_EQ(end.signal, 9);
}

TEST(BoundedCommand, OutputBeyondTheLimitIsDroppedAndNotWaitedFor) {
  const CommandEnd end = runBounded({"sh", "-c", "head -c 1000000 /dev/zero"}, soon(), 100);
  EXPECT_TRUE(end.succeeded());
  EXPECT_EQ(end.out.size(), 100U);
}

// Whether it is gone, or waits for its parent to notice.
bool hasEnded(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/stat");
  std::string text;
  std::getline(file, text);
  const auto name = text.rfind(") ");
  return name == std::string::npos || text.compare(name, 3, ") Z") == 0;
}

TEST(BoundedCommand, AHangingCommandAndItsChildrenEndAtTheDeadline) {
  // A slow machine may not come to the child in time: then again, with more of it.
  for (const int limit : {150, 2000, 15000}) {
    const Deadline deadline = Deadline::after(std::chrono::seconds(40));
    const CommandEnd end = runBounded({"sh", "-c", "sleep 60 & echo $!; sleep 60"},
                                      Deadline::after(std::chrono::milliseconds(limit)));
    EXPECT_TRUE(end.timedOut);
    EXPECT_FALSE(deadline.passed());  // neither sleep was waited for
    if (end.out.empty()) continue;
    const std::string child = end.out.substr(0, end.out.find('\n'));
    while (!hasEnded(child) && !deadline.passed()) std::this_thread::yield();
    EXPECT_TRUE(hasEnded(child)) << child;
    return;
  }
  FAIL() << "sh took longer than 15 s to begin";
}

TEST(BoundedCommand, StdinIsEmpty) {
  EXPECT_TRUE(runBounded({"sh", "-c", "! read line"}, soon()).succeeded());
}

TEST(BoundedCommand, WhatCannotBeStartedSaysSo) {
  EXPECT_EQ(runBounded({"no-such-command-here"}, soon()).startError, ENOENT);
  EXPECT_NE(runBounded({"/etc/passwd"}, soon()).startError, 0);
}

}  // namespace bounded_command_test
}  // namespace farandole::process
