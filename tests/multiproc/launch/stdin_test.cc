// Standard input belongs to rank 0.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "multiproc/launch/command.h"
#include "paths.h"

namespace farandole::test {
namespace {

TEST(LaunchStdin, GoesToRankZeroOnlyWithItsEnd) {
  Command::Options options;
  options.input = "one\ntwo";
  Command command(shellJob(2, "cat; echo end", {"-q"}), options);
  const Outcome outcome = command.finish();
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(countOf(outcome.out, "[0]<stdout>:one\n"), 1);
  EXPECT_EQ(countOf(outcome.out, "[0]<stdout>:twoend\n"), 1);
  EXPECT_EQ(countOf(outcome.out, "[1]<stdout>:end\n"), 1);
  EXPECT_EQ(linesOf(outcome.out).size(), 3U);
}

TEST(LaunchStdin, RankZeroThatDoesNotReadBlocksNothing) {
  Command::Options options;
  options.input.assign(8 << 20, 'x');
  Command command(shellJob(2, "echo done", {"-q"}), options);
  const Outcome outcome = command.finish();
  EXPECT_FALSE(outcome.timedOut);
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(countOf(outcome.out, "done"), 2);
}

TEST(LaunchStdin, WhatRankZeroDoesNotReadIsLeftForOthers) {
  Command::Options options;
  options.input = "first\nsecond\n";
  Command command(shellJob(1,
                           std::string(test::paths::kCommand) +
                               " run --no-prefix sh -c 'read x; echo got $x'; cat",
                           {"--no-prefix"}),
                  options);
  const Outcome outcome = command.finish();
  EXPECT_EQ(outcome.out, "got first\nsecond\n");
}

TEST(LaunchStdin, FromATerminal) {
  Command::Options terminal;
  terminal.terminal = true;
  Command command(shellJob(2, "echo ready; cat; echo end", {"-q"}), terminal);
  ASSERT_TRUE(command.waitForOutput("ready", 2));
  command.type("typed\n");
  ASSERT_TRUE(command.waitForOutput("[0]<stdout>:typed")) << command.out();
  command.type("\004");
  const Outcome outcome = command.finish();
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(countOf(outcome.out, "]<stdout>:end"), 2);
  EXPECT_EQ(countOf(outcome.out, "[1]<stdout>:typed"), 0);
}

}  // namespace
}  // namespace farandole::test
