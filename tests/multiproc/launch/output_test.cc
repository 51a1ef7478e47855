// The ranks' output: whole lines, all of them, in order, with prefixes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "launch/output/rank_output.h"
#include "multiproc/launch/command.h"
#include "paths.h"

namespace farandole::test {
namespace {

using launch::output::OutputFormat;
using launch::output::RankOutput;
using launch::output::Stream;

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::UnorderedElementsAre;

TEST(LaunchOutput, StreamsAndPrefixes) {
  const Outcome outcome = runCommand(shellJob(2, "echo out; echo err >&2", {"-q"}));
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(linesOf(outcome.out), UnorderedElementsAre("[0]<stdout>:out", "[1]<stdout>:out"));
  EXPECT_THAT(linesOf(outcome.err), UnorderedElementsAre("[0]<stderr>:err", "[1]<stderr>:err"));
}

TEST(LaunchOutput, OtherForms) {
  EXPECT_EQ(runCommand(shellJob(1, "echo a", {"--no-prefix"})).out, "a\n");
  EXPECT_EQ(runCommand(shellJob(1, "echo a", {"--tag-output"})).out, "[1,0]<stdout>:a\n");
  EXPECT_THAT(runCommand(shellJob(1, "echo a", {"--timestamp-output"})).out,
              testing::MatchesRegex("... ... .. ..:..:.. ....\\[0\\]<stdout>:a\n"));
}

TEST(LaunchOutput, UnfinishedLastLineIsCompleted) {
  const Outcome outcome = runCommand(shellJob(2, "printf 'a\\nb'", {"-q"}));
  EXPECT_EQ(countOf(outcome.out, "]<stdout>:a\n"), 2);
  EXPECT_EQ(countOf(outcome.out, "]<stdout>:b\n"), 2);
}

// Two ranks, both streams of each, some 30 MB: every line arrives once, whole and in order.
TEST(LaunchOutput, ChattyRanksLoseAndTearNothing) {
  constexpr int kLines = 120'000;
  const Outcome outcome = runCommand(shellJob(
      2,
      "seq -f \"%.0f of $RANK to out ------------------------------------\" 120000 & "
      "seq -f \"%.0f of $RANK to err ------------------------------------\" 120000 >&2; wait",
      {"-q"}));
  ASSERT_EQ(outcome.code, 0);
  for (const bool err : {false, true}) {
    std::map<int, int> next{{0, 1}, {1, 1}};
    for (const std::string& line : linesOf(err ? outcome.err : outcome.out)) {
      ASSERT_GT(line.size(), 1U);
      const int rank = line[1] - '0';
      ASSERT_TRUE(next.contains(rank)) << line;
      const std::string r = std::to_string(rank);
      ASSERT_EQ(line, "[" + r + "]<std" + (err ? "err" : "out") +
                          ">:" + std::to_string(next[rank]++) + " of " + r + " to " +
                          (err ? "err" : "out") + " ------------------------------------");
    }
    EXPECT_EQ(next[0], kLines + 1);
    EXPECT_EQ(next[1], kLines + 1);
  }
}

// A reader that sleeps makes the ranks wait, and nothing else: the launcher still ends the job.
TEST(LaunchOutput, BlockedReaderDoesNotBlockTheLauncher) {
  Command command(shellJob(2, "echo pid $$; exec yes 0123456789", {"-q", "--grace", "1"}));
  ASSERT_TRUE(command.waitForOutput("pid ", 2));
  const auto pids = pidsIn(command.out());
  pause(std::chrono::milliseconds(500));  // nobody reads: all buffers are full
  command.signal(SIGTERM);
  for (const pid_t pid : pids) {
    EXPECT_TRUE(waitUntil(std::chrono::seconds(20), [&] { return isGone(pid); }));
  }
  EXPECT_EQ(command.finish().code, 143);
}

TEST(LaunchOutput, ReaderThatGoesEndsTheJobQuietly) {
  Command command(shellJob(2, "echo pid $$; exec yes 0123456789"));
  ASSERT_TRUE(command.waitForOutput("pid ", 2));
  const auto pids = pidsIn(command.out());
  command.closeOutput();
  const Outcome outcome = command.finish();
  EXPECT_EQ(outcome.code, 128 + SIGPIPE);
  EXPECT_EQ(outcome.err, "");
  for (const pid_t pid : pids) EXPECT_TRUE(isGone(pid));
}

TEST(LaunchOutput, CopiesInFiles) {
  TemporaryFolder folder;
  const Outcome outcome = runCommand(shellJob(
      2, "echo out $RANK; printf err >&2", {"-q", "--output-filename", folder.path() + "/logs"}));
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.out, HasSubstr("[1]<stdout>:out 1\n"));
  EXPECT_EQ(folder.read("logs/rank.0/stdout"), "out 0\n");
  EXPECT_EQ(folder.read("logs/rank.1/stdout"), "out 1\n");
  EXPECT_EQ(folder.read("logs/rank.1/stderr"), "err");
}

TEST(LaunchOutput, FolderThatCannotBeCreatedIsAnError) {
  const Outcome outcome =
      runCommand(shellJob(1, "echo a", {"--output-filename", "/proc/no/such/place"}));
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("cannot create the folder"));
  EXPECT_EQ(outcome.out, "");
}

TEST(LaunchOutput, CopyThatCannotBeWrittenIsSaidOncePerRank) {
  TemporaryFolder folder;
  Command::Options limited;
  limited.program = "/bin/sh";
  const auto job = [&](const std::string& option) {
    // Files may have 4 KiB; what is longer is an error, as a full disk is.
    return std::vector<std::string>{
        "-c", "trap '' XFSZ; ulimit -f 8; exec " + std::string(test::paths::kCommand) + " run -q " +
                  option + " -np 2 --output-filename " + folder.path() +
                  "/logs sh -c 'i=0; while [ $i -lt 400 ]; do echo line $i of some length; "
                  "echo line $i of some length >&2; i=$((i+1)); done; [ $RANK = 0 ] || echo end'"};
  };
  Command command(job(""), limited);
  const Outcome outcome = command.finish();
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.out, HasSubstr("[1]<stdout>:end\n"));
  for (const char* rank : {"0", "1"}) {
    EXPECT_EQ(countOf(outcome.err, std::string("the output of rank ") + rank +
                                       " is no longer kept: cannot write to " + folder.path() +
                                       "/logs/rank." + rank + ": File too large\n"),
              1)
        << outcome.err;
  }
  Command strict(job("--require-logs"), limited);
  const Outcome refused = strict.finish();
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("the output of 2 of 2 ranks was not kept (--require-logs)"));
  EXPECT_EQ(runCommand(shellJob(1, "echo a",
                                {"--require-logs", "--output-filename", folder.path() + "/logs"}))
                .code,
            0);
}

TEST(LaunchOutput, PreparedLinksAreNotFollowed) {
  namespace fs = std::filesystem;
  TemporaryFolder folder;
  const std::string logs = folder.path() + "/logs";
  folder.write("precious", "mine\n");
  fs::create_directories(logs + "/rank.0");
  fs::create_directories(folder.path() + "/elsewhere");
  fs::create_symlink(folder.path() + "/precious", logs + "/rank.0/stdout");
  const auto run = [&] {
    return runCommand(shellJob(1, "echo a", {"-q", "--output-filename", logs}));
  };
  EXPECT_EQ(run().code, 0);
  EXPECT_EQ(folder.read("precious"), "mine\n");
  EXPECT_EQ(folder.read("logs/rank.0/stdout"), "a\n");
  // A folder of a rank elsewhere, in a place where only we can have said so; and in another.
  fs::remove_all(logs + "/rank.0");
  fs::create_symlink(folder.path() + "/elsewhere", logs + "/rank.0");
  EXPECT_EQ(run().code, 0);
  EXPECT_EQ(folder.read("elsewhere/stdout"), "a\n");
  fs::permissions(logs, fs::perms::all);
  const Outcome refused = run();
  EXPECT_NE(refused.code, 0);
  EXPECT_THAT(refused.err,
              HasSubstr("logs/rank.0' is a symbolic link that somebody else may have"));
  // The whole folder.
  fs::create_symlink(folder.path() + "/elsewhere", folder.path() + "/mine");
  EXPECT_EQ(
      runCommand(shellJob(1, "echo b", {"-q", "--output-filename", folder.path() + "/mine"})).code,
      0);
  EXPECT_EQ(folder.read("elsewhere/rank.0/stdout"), "b\n");
}

TEST(LaunchOutput, ColoursOnlyOnATerminalAndOnlyIfWelcome) {
  Command::Options terminal;
  terminal.terminal = true;
  terminal.env = {"TERM=xterm"};
  EXPECT_THAT(Command(shellJob(1, "echo a"), terminal).finish().out,
              HasSubstr("\033[36m[0]<stdout>:\033[0ma"));
  terminal.env = {"TERM=xterm", "NO_COLOR=1"};
  EXPECT_THAT(Command(shellJob(1, "echo a"), terminal).finish().out, Not(HasSubstr("\033")));
}

// ---- RankOutput by itself: the result must not depend on how the bytes arrive. ----

std::string fed(const std::string& data, std::size_t piece) {
  RankOutput output(0, OutputFormat{});
  std::string text;
  for (std::size_t at = 0; at < data.size(); at += piece) {
    output.feed(Stream::kOut, std::string_view(data).substr(at, piece), text);
  }
  output.finish(Stream::kOut, text);
  return text;
}

TEST(RankOutput, LinesDoNotDependOnPieces) {
  const std::string kPrefix = "[0]<stdout>:";
  const std::string longest(RankOutput::kLongestLine, 'x');
  const struct {
    std::string data;
    std::vector<std::string> lines;
  } kCases[] = {{"", {}},
                {"\n", {""}},
                {"a\n\nb", {"a", "", "b"}},
                {"a\r\nb\r\n", {"a\r", "b\r"}},
                {"\r 1%\r 2%\r 3%\n", {" 1%", " 2%", " 3%"}},
                {"a\r", {"a"}},
                {"\r\r\r", {}},
                {std::string("nul\0byte\n", 9), {std::string("nul\0byte", 8)}},
                {longest + "\n", {longest}},
                {longest + "y\n", {longest, "y"}},
                {longest + longest, {longest, longest}},
                {longest + longest + "z\nq", {longest, longest, "z", "q"}}};
  for (const auto& [data, lines] : kCases) {
    std::string expected;
    for (const std::string& line : lines) expected += kPrefix + line + "\n";
    for (const std::size_t piece : {1UL, 2UL, 3UL, 4096UL, 65537UL, 1UL << 20}) {
      ASSERT_TRUE(fed(data, piece) == expected)
          << "pieces of " << piece << " of " << data.substr(0, 40);
    }
  }
}

// Many lines at once go a shorter way than single ones.
TEST(RankOutput, ManyLinesOfAllKindsDoNotDependOnPieces) {
  std::string data;
  for (int i = 0; i < 4000; ++i) {
    data += std::to_string(i);
    data.append(static_cast<std::size_t>(i % 7 == 0 ? 0 : i % 300),
                static_cast<char>('a' + i % 26));
    if (i % 500 == 17) data.append(5000, 'L');
    if (i % 900 == 23) data.append(20'000, 'M');
    if (i % 41 == 0) data += "\r";
    data += i % 97 == 0 ? "\r\n" : "\n";
  }
  data.append(RankOutput::kLongestLine + 5, 'x');
  const std::string expected = fed(data, 1);
  for (const std::size_t piece : {8192UL, 65537UL, 262'144UL, 1UL << 22}) {
    ASSERT_TRUE(fed(data, piece) == expected) << "pieces of " << piece;
  }
  RankOutput whole(0, OutputFormat{});
  RankOutput bytes(0, OutputFormat{});
  std::string text;
  whole.feed(Stream::kOut, data, text);
  for (const char byte : data) bytes.feed(Stream::kOut, {&byte, 1}, text);
  EXPECT_EQ(whole.lastLines(20), bytes.lastLines(20));
}

TEST(RankOutput, LastLinesAreBoundedAndInOrder) {
  RankOutput output(0, OutputFormat{});
  std::string text;
  EXPECT_EQ(output.lastLines(20), "");
  for (int i = 0; i < 100'000; ++i) {
    output.feed(i % 2 == 0 ? Stream::kOut : Stream::kErr, std::to_string(i) + "\n", text);
  }
  output.feed(Stream::kOut, std::string(1 << 20, 'w') + "\nopen", text);
  const auto lines = linesOf(output.lastLines(4));
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_THAT(lines.back(), "open");
  EXPECT_LT(output.lastLines(20).size(), 64U << 10);
  EXPECT_THAT(linesOf(output.lastLines(1)), ElementsAre("open"));
  EXPECT_THAT(linesOf(output.lastLines(0)), IsEmpty());
}

TEST(LaunchOutput, StatusLineStaysBelowTheOutputOnATerminal) {
  Command::Options options;
  options.terminal = true;
  options.env = {"TERM=xterm"};
  const TemporaryFolder folder;
  const auto untilThereIs = [&](const std::string& name) {
    return "while [ ! -e " + folder.path() + "/" + name + " ]; do sleep 0.1; done; ";
  };
  // One rank: lines of two may come together, with the status line below both.
  const std::string say = "[ $FARANDOLE_RANK = 1 ] || echo late; ";
  Command command(shellJob(2, untilThereIs("seen") + say + untilThereIs("again")), options);
  ASSERT_TRUE(command.waitForOutput("farandole: 2 of 2 ranks running, 0:")) << command.out();
  folder.write("seen", "");
  ASSERT_TRUE(command.waitForOutput("late\r\nfarandole:")) << command.out();
  folder.write("again", "");
  const Outcome outcome = command.finish();
  EXPECT_EQ(outcome.code, 0);
  // Erased before each line, drawn again behind it, and gone in the end.
  EXPECT_THAT(outcome.out,
              ::testing::ContainsRegex("\r\033\\[K[^\n]*<stdout>:[^\n]*late\r\nfarandole:"));
  const std::string end = "\r\033[K";
  EXPECT_EQ(outcome.out.substr(outcome.out.size() - end.size()), end);
}

TEST(LaunchOutput, NoStatusLineForTheQuietOrInAFile) {
  Command::Options options;
  options.terminal = true;
  options.env = {"TERM=xterm"};
  Command quiet(shellJob(2, "sleep 2.5", {"--quiet"}), options);
  EXPECT_EQ(countOf(quiet.finish().out, "running"), 0);
  Command piped(shellJob(2, "sleep 2.5"));
  EXPECT_EQ(countOf(piped.finish().err, "running"), 0);
}

}  // namespace
}  // namespace farandole::test
