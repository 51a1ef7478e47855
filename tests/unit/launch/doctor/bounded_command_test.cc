#include "launch/bounded_command.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace farandole {
namespace {

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

TEST(BoundedCommand, AHangingCommandAndItsChildrenEndAtTheDeadline) {
  const TimePoint begin = Clock::now();
  const CommandEnd end = runBounded({"sh", "-c", "echo begun; sleep 60 & sleep 60"},
                                    Deadline::after(std::chrono::milliseconds(150)));
  EXPECT_TRUE(end.timedOut);
  EXPECT_EQ(end.out, "begun\n");
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(2));
}

TEST(BoundedCommand, StdinIsEmpty) {
  EXPECT_TRUE(runBounded({"sh", "-c", "! read line"}, soon()).succeeded());
}

TEST(BoundedCommand, WhatCannotBeStartedSaysSo) {
  EXPECT_EQ(runBounded({"no-such-command-here"}, soon()).startError, ENOENT);
  EXPECT_NE(runBounded({"/etc/passwd"}, soon()).startError, 0);
}

}  // namespace
}  // namespace farandole
