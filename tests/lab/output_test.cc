// What ranks on other machines write arrives whole, whatever the reader does; what is written to
// the launcher arrives at a rank 0 on another machine.
#include <signal.h>

#include <map>

#include "lab/job.h"
#include "paths.h"

namespace farandole::test {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// Lines whose length and content follow from rank and number.
constexpr const char* kFlood =
    "import os, sys\n"
    "r = os.environ['RANK']\n"
    "for i in range(int(sys.argv[1])):\n"
    "    sys.stdout.write('%s %d %s\\n' % (r, i, 'x' * (i % 200)))\n"
    "sys.stdout.write('%s end without newline' % r)\n";

// Every line of every rank once, whole and in order.
void expectFlood(const std::string& out, int ranks, int lines) {
  std::map<std::string, int> next;
  for (const std::string& line : linesOf(out)) {
    const auto colon = line.find("]<stdout>:");
    ASSERT_NE(colon, std::string::npos) << line;
    const std::string rank = line.substr(1, colon - 1);
    const int i = next[rank]++;
    const std::string expected = i == lines
                                     ? rank + " end without newline"
                                     : rank + " " + std::to_string(i) + " " +
                                           std::string(static_cast<std::size_t>(i % 200), 'x');
    ASSERT_EQ(line.substr(colon + 10), expected);
  }
  EXPECT_EQ(next.size(), static_cast<std::size_t>(ranks));
  for (const auto& [rank, count] : next) EXPECT_EQ(count, lines + 1) << "of rank " << rank;
}

TEST(LabOutput, ReaderThatPausesLosesNothing) {
  LAB_OR_SKIP();
  const Lab lab;
  constexpr int kLines = 200000;  // 22 MB of each: far more than all buffers on the way
  const auto job = lab.start("h0", jobWords({"-q", "-H", "h0:1,h1:1,h2:1"},
                                            {"python3", "-c", kFlood, std::to_string(kLines)}));
  pause(seconds(12));
  // Held back, not buffered without end.
  EXPECT_FALSE(lab.processes("h1").empty());
  EXPECT_FALSE(lab.processes("h2").empty());
  const Outcome outcome = job->finish();
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  expectFlood(outcome.out, 3, kLines);
  expectNothingLeft(lab, 3);
}

TEST(LabOutput, SlowLinkLosesNothing) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 2});
  lab.must("rate", {"h1", "4mbit"});
  constexpr int kLines = 40000;  // 4.5 MB
  const Outcome outcome = lab.run(
      "h0", jobWords({"-q", "-H", "h0:1,h1:1"}, {"python3", "-c", kFlood, std::to_string(kLines)}));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  expectFlood(outcome.out, 2, kLines);
}

TEST(LabOutput, ReaderThatHasSeenEnough) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 2});
  const Outcome outcome =
      lab.run("h0", {"bash", "-c",
                     std::string(test::paths::kCommand) +
                         " run -q -H h1:1 yes | head -n 3; echo code ${PIPESTATUS[0]}"});
  EXPECT_EQ(outcome.out, "[0]<stdout>:y\n[0]<stdout>:y\n[0]<stdout>:y\ncode 141\n");
  expectNothingLeft(lab, 2);
}

TEST(LabOutput, ChosenRanksFilesAndTags) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 2});
  const std::string script = "echo out $RANK; echo err $RANK >&2";
  const Outcome outcome = runJob(
      lab,
      {"-q", "--ranks", "1", "--tag-output", "--output-filename", "/tmp/logs", "-H", "h0:1,h1:2"},
      script);
  EXPECT_EQ(outcome.out, "[1,1]<stdout>:out 1\n");
  EXPECT_EQ(outcome.err, "[1,1]<stderr>:err 1\n");
  for (const char* rank : {"0", "1", "2"}) {
    const std::string folder = std::string("/tmp/logs/rank.") + rank;
    EXPECT_EQ(lab.readFile("h0", folder + "/stdout"), std::string("out ") + rank + "\n");
    EXPECT_EQ(lab.readFile("h0", folder + "/stderr"), std::string("err ") + rank + "\n");
  }
  EXPECT_EQ(lab.shell("h1", "ls /tmp | grep logs").out, "");
}

TEST(LabOutput, WhatACrashingRankHadWritten) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 2});
  const Outcome outcome =
      runJob(lab, {"-q", "--no-prefix", "-H", "h1:1"},
             "head -c 3000000 /dev/zero | tr '\\0' z; printf 'and then'; kill -SEGV $$");
  EXPECT_EQ(outcome.code, 128 + SIGSEGV);
  EXPECT_EQ(countOf(outcome.out, "z"), 3000000);
  EXPECT_THAT(outcome.out, testing::EndsWith("and then\n"));
}

TEST(LabOutput, InputReachesRankZeroElsewhere) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 2});
  std::string bytes;
  unsigned random = 1;
  for (int i = 0; i < 1 << 20; ++i) {
    random = random * 1103515245U + 12345U;
    bytes += static_cast<char>(random >> 16);
  }
  Command::Options how;
  how.input = bytes;
  const Outcome outcome = runJob(
      lab, {"-q", "--no-prefix", "-H", "h1:1,h0:1"},
      "if [ $RANK = 0 ]; then sleep 1; cat > /tmp/got; wc -c < /tmp/got; else wc -c; fi", how);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(sortedLines(outcome.out), testing::ElementsAre("0", std::to_string(1 << 20)));
  EXPECT_TRUE(lab.readFile("h1", "/tmp/got") == bytes);
  // A rank that does not read it is not held up, nor does it hold up.
  const Outcome deaf = runJob(lab, {"-q", "-H", "h1:1"}, "exec <&-; sleep 0.5", how);
  EXPECT_EQ(deaf.code, 0) << deaf.err;
  const Outcome lazy = runJob(lab, {"-q", "-H", "h1:1"}, "sleep 0.5", how);
  EXPECT_EQ(lazy.code, 0) << lazy.err;
  // No input at all: its end is seen.
  EXPECT_EQ(runJob(lab, {"-q", "--no-prefix", "-H", "h1:1"}, "wc -c").out, "0\n");
}

TEST(LabOutput, TerminalInterruptsAndTypes) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 2});
  Command::Options how;
  how.terminal = true;
  const auto job = startJob(lab, {"-q", "-H", "h1:1,h0:1"},
                            "[ $RANK = 0 ] || exec sleep 300; echo ready; read word; echo heard "
                            "$word; exec sleep 300",
                            how);
  ASSERT_TRUE(job->waitForOutput("ready")) << job->out();
  job->command().type("hello\n");
  ASSERT_TRUE(job->waitForOutput("heard hello")) << job->out();
  job->command().type("\x03");
  const Outcome outcome = job->finish();
  EXPECT_FALSE(outcome.timedOut);
  EXPECT_EQ(outcome.code, 128 + SIGINT) << outcome.out;
  expectNothingLeft(lab, 2);
}

TEST(LabOutput, TerminalThatIsClosed) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 2});
  Command::Options how;
  how.terminal = true;
  const auto job =
      startJob(lab, {"-H", "h1:1,h0:1"}, "setsid sleep 301 & echo ready; exec sleep 300", how);
  ASSERT_TRUE(job->waitForOutput("ready", 2)) << job->out();
  job->command().closeOutput();
  expectNothingLeft(lab, 2);
}

}  // namespace
}  // namespace farandole::test
