// What `bench launch` is made of: lines, timed commands, turns, launchers, the report.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/fd.h"
#include "bench/launch_command.h"
#include "bench/launch_contest.h"
#include "bench/launch_lines.h"
#include "bench/launch_peers.h"
#include "bench/launch_process.h"
#include "bench/launch_remote.h"
#include "bench/launch_report.h"
#include "process/command_lookup.h"

namespace farandole::bench {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr auto ignore = [](std::string_view) {};

Deadline soon() { return Deadline::after(std::chrono::seconds(20)); }

LineCount checked(int ranks, std::size_t lines, const std::string& text) {
  LineCheck check(ranks, lines);
  check.take(text);
  return check.finish();
}

TEST(LaunchLines, AreAsLongAsTheySay) {
  for (const std::size_t number : {0u, 7u, 25u, 26u, 1234567890u}) {
    const std::string line = lineOf(number);
    EXPECT_EQ(line.size(), kLineBytes);
    EXPECT_EQ(line.find('\n'), kLineBytes - 1);
  }
  EXPECT_EQ(lineOf(7).substr(0, 14), "0000000007hijk");
  EXPECT_EQ(linesIn(99), 1u);
  EXPECT_EQ(linesIn(1000), 10u);
}

TEST(LaunchLines, AreFoundWholeInPiecesOfAnySize) {
  std::string text;
  for (std::size_t i = 0; i < 40; ++i) {
    text += "[0]<stdout>:" + lineOf(i);
    text += "[1]<stdout>:" + lineOf(i);
  }
  for (const std::size_t size : {1u, 7u, 100u, 113u, 100000u}) {
    LineCheck check(2, 40);
    for (std::size_t at = 0; at < text.size(); at += size) {
      check.take(std::string_view(text).substr(at, size));
    }
    const LineCount count = check.finish();
    EXPECT_TRUE(count.allRight()) << size << ": " << count.text();
    EXPECT_EQ(count.text(), "all 80 whole");
  }
}

TEST(LaunchLines, WithoutPrefixesAreCounted) {
  const std::string text = lineOf(0) + lineOf(0) + lineOf(1) + lineOf(1);
  EXPECT_TRUE(checked(2, 2, text).allRight());
  const LineCount once = checked(1, 2, text);
  EXPECT_EQ(once.repeated, 2u);
  EXPECT_FALSE(once.allRight());
}

TEST(LaunchLines, EveryHarmIsSeen) {
  const std::string a = lineOf(0);
  const std::string b = lineOf(1);
  EXPECT_EQ(checked(1, 2, a).lost, 1u);
  EXPECT_EQ(checked(1, 2, a).text(), "1 whole, 1 lost");
  const auto torn = [](const std::string& text) { return checked(1, 2, text).torn; };
  EXPECT_EQ(torn(a.substr(0, 50) + b.substr(50) + a), 1u) << "put together from two";
  EXPECT_EQ(torn(a.substr(0, 50) + b + a.substr(50)), 2u) << "one within the other";
  EXPECT_EQ(torn(a + b.substr(0, 99)), 1u) << "without an end";
  EXPECT_EQ(torn(a + "[9]<stdout>:" + b), 1u) << "no such rank";
  EXPECT_EQ(torn(a + "[0]<stderr>:" + b), 1u);
  EXPECT_EQ(torn(a + "\n" + b), 1u) << "an empty line";
  EXPECT_EQ(torn(a + lineOf(2)), 1u) << "never written";
  EXPECT_EQ(torn(a + std::string(5000, 'x') + "\n" + b), 1u);
  const std::string turned = "[0]<stdout>:" + b + "[0]<stdout>:" + a;
  EXPECT_EQ(checked(1, 2, turned).disordered, 2u);
}

TEST(LaunchLines, AreWrittenAsTheyAreRead) {
  constexpr std::size_t kLines = 1000;  // twelve pieces and a rest
  const UniqueFd file(::memfd_create("lines", MFD_CLOEXEC));
  ASSERT_TRUE(writeLines(file.get(), kLines).ok());
  std::string text(kLines * kLineBytes + 1, ' ');
  const ssize_t n = ::pread(file.get(), text.data(), text.size(), 0);
  ASSERT_EQ(n, static_cast<ssize_t>(kLines * kLineBytes));
  text.resize(static_cast<std::size_t>(n));
  EXPECT_TRUE(checked(1, kLines, text).allRight());
  EXPECT_EQ(text.substr(kLineBytes, kLineBytes), lineOf(1));
}

TEST(LaunchProcess, TellsWhenOutputCame) {
  std::string text;
  const auto run = runTimed(
      {{"sh", "-c", "echo $GREETING; sleep 0.05; echo end"}, {{"GREETING", "hello"}}},
      [&text](std::string_view piece) { text += piece; }, soon());
  ASSERT_TRUE(run.ok()) << run.status().message();
  EXPECT_EQ(text, "hello\nend\n");
  EXPECT_GT(run.value().firstByte, 0);
  EXPECT_GE(run.value().lastByte, run.value().firstByte);
  EXPECT_GE(run.value().ended, 0.05) << "it sleeps so long";
}

TEST(LaunchProcess, FailuresCarryTheLastWords) {
  const auto failed =
      runTimed({{"sh", "-c", "echo first >&2; echo why >&2; exit 3"}}, ignore, soon());
  EXPECT_EQ(failed.status().message(), "sh ended with exit code 3: why");
  EXPECT_FALSE(runTimed({{"/nonexistent/program"}}, ignore, soon()).ok());
}

TEST(LaunchProcess, LateOnesAreEndedWithTheirChildren) {
  std::string text;
  const auto late = runTimed(
      {{"sh", "-c", "sleep 100 & echo $!; wait"}},
      [&text](std::string_view piece) { text += piece; },
      Deadline::after(std::chrono::milliseconds(200)));
  EXPECT_EQ(late.status().code(), Code::kTimeout);
  EXPECT_THAT(late.status().message(), HasSubstr("has not ended in time"));
  const pid_t child = static_cast<pid_t>(std::atoi(text.c_str()));
  ASSERT_GT(child, 1);
  const Deadline deadline = soon();
  const auto lives = [child] {
    std::ifstream in("/proc/" + std::to_string(child) + "/stat");
    std::string state;
    in >> state >> state >> state;
    return in && state != "Z";
  };
  while (lives() && !deadline.passed()) ::usleep(1000);
  EXPECT_FALSE(lives());
}

TEST(LaunchContest, RotatesAndLeavesOutWhoFails) {
  std::string order;
  int calls = 0;
  const auto good = [&order](char name) {
    return [&order, name]() -> Result<LaunchSample> {
      order += name;
      return LaunchSample{1};
    };
  };
  const auto measurements = runLaunchContest("test", 0,
                                             {{"a", Side::kOurs, good('a')},
                                              {"b", Side::kPeer, good('b')},
                                              {"c", Side::kPeer,
                                               [&calls]() -> Result<LaunchSample> {
                                                 if (++calls > 2)
                                                   return Status::unavailable("tired");
                                                 return LaunchSample{1};
                                               }}},
                                             3);
  EXPECT_EQ(order,
            "ab"
            "ab"
            "ba"
            "ab");
  EXPECT_EQ(measurements[0].seconds.size(), 3u) << "the first attempt does not count";
  EXPECT_EQ(measurements[2].seconds.size(), 1u);
  EXPECT_EQ(measurements[2].failure, "tired");
  EXPECT_EQ(calls, 3);
}

TEST(LaunchContest, OnlyOursMayNotTearLines) {
  const auto tearing = []() -> Result<LaunchSample> {
    return LaunchSample{1, {.whole = 9, .torn = 1}};
  };
  const auto measurements = runLaunchContest(
      "test", 1000, {{"ours", Side::kOurs, tearing}, {"theirs", Side::kPeer, tearing}}, 2);
  EXPECT_EQ(measurements[0].failure, "lines: 9 whole, 1 torn");
  EXPECT_EQ(measurements[1].failure, "");
  EXPECT_EQ(measurements[1].lines.torn, 2u);
}

TEST(LaunchPeers, OurOwnCommandsAreNoPeers) {
  std::string pattern = (fs::temp_directory_path() / "farandole-launch-XXXXXX").string();
  ASSERT_NE(mkdtemp(pattern.data()), nullptr);
  const fs::path root(pattern);
  const auto program = [](const fs::path& path) {
    fs::create_directories(path.parent_path());
    std::ofstream(path) << "#!/bin/sh\n";
    fs::permissions(path, fs::perms::owner_all);
  };
  program(root / "ours/farandole");
  fs::create_symlink("farandole", root / "ours/torchrun");
  program(root / "theirs/torchrun");
  std::ofstream(root / "plain") << "not executable\n";
  const std::string path =
      root.string() + ":" + (root / "ours").string() + ":" + (root / "theirs").string();
  EXPECT_EQ(findProgram(path, "torchrun"), (root / "theirs/torchrun").string());
  EXPECT_EQ(findProgram((root / "ours").string(), "torchrun"), "");
  EXPECT_EQ(findProgram(path, "plain"), "");
  fs::remove_all(root);
}

TEST(LaunchPeers, MissingOnesAreNamed) {
  const auto all = selectLaunchers("all");
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(all.value().size(), 5u);
  for (const Launcher& one : all.value()) EXPECT_NE(one.program.empty(), one.missing.empty());
  EXPECT_TRUE(selectLaunchers("none").value().empty());
  EXPECT_THAT(selectLaunchers("mpich,slurm").status().message(), HasSubstr("'slurm'"));
}

TEST(LaunchPeers, CommandLines) {
  const auto words = [](const char* name) {
    return startWith({name, "/x/bin/p", "", ""}, 3, {"true"}).words;
  };
  EXPECT_THAT(words("mpich"), ElementsAre("/x/bin/p", "-n", "3", "true"));
  EXPECT_THAT(words("horovodrun"),
              ElementsAre("/x/bin/p", "-np", "3", "-H", "localhost:3", "true"));
  EXPECT_THAT(words("torchrun"), ElementsAre("/x/bin/p", "--standalone", "--nproc_per_node", "3",
                                             "--no_python", "true"));
  const auto intel = startWith({"intelmpi", "/x/bin/p", "", ""}, 3, {"true"});
  EXPECT_THAT(intel.environment, testing::Contains(testing::Pair("I_MPI_ROOT", "/x")));
  EXPECT_THAT(startWithFarandole(2, {"true"}, {"-H", "a:2"}).words,
              ElementsAre(process::ownProgram(), "run", "-H", "a:2", "-np", "2", "true"));
}

TEST(LaunchRemote, BothReachTheSameHost) {
  const auto host = RemoteHost::of({"192.0.2.1", "me", 7, 0}, 9, "/key");
  ASSERT_TRUE(host.ok()) << host.status().message();
  const auto bare = host.value().bare("true").words;
  EXPECT_EQ(bare.back(), "true");
  EXPECT_THAT(bare, testing::IsSupersetOf({"BatchMode=yes", "-p", "7", "-i", "/key", "-l", "me"}));
  const auto run = host.value().run(2, {"true"}).words;
  EXPECT_THAT(run, testing::IsSupersetOf({"-H", "me@192.0.2.1:7:2", "-p", "9", "-i", "/key"}));
  EXPECT_FALSE(RemoteHost::of({"127.0.0.1"}, 0, "").ok()) << "not reached by ssh";
}

TEST(LaunchRemote, PathsAreLookedAtBeforeTheyAreUsed) {
  EXPECT_TRUE(isRemoteLinesPath("/tmp/farandole-bench-aB3xYz"));
  for (const char* bad : {"", "/tmp/farandole-bench-", "/tmp/farandole-bench-aB3xY;",
                          "/tmp/farandole-bench-aB3xYz1", "/etc/farandole-bench-aB3xYz"}) {
    EXPECT_FALSE(isRemoteLinesPath(bad)) << bad;
  }
}

TEST(LaunchCommand, RankCounts) {
  EXPECT_THAT(parseRankCounts("2,64").value(), ElementsAre(2, 64));
  for (const char* bad : {"", "0", "2,", "-1", "2x", "1025", "2,,4", "99999999999"}) {
    EXPECT_FALSE(parseRankCounts(bad).ok()) << bad;
  }
}

TEST(LaunchReport, RatiosAndFormats) {
  LaunchReport report;
  const auto rows = report.add({{"start, 2 ranks", "farandole", Side::kOurs, 0, {2, 1, 3}},
                                {"start, 2 ranks", "slow", Side::kPeer, 0, {9, 8, 10}},
                                {"start, 2 ranks", "quick", Side::kPeer, 0, {1, 1, 1}},
                                {"start, 2 ranks", "bare", Side::kBound, 0, {1}},
                                {"start, 2 ranks", "broken", Side::kPeer, 0, {}, {}, "gone"}});
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_THAT(rows[0].ratios, ElementsAre(testing::Pair("quick", 0.5), testing::Pair("slow", 4.5)));
  EXPECT_TRUE(rows[1].ratios.empty());
  EXPECT_THAT(LaunchReport::text(rows[0]), HasSubstr("0.50x quick, 4.50x slow"));
  const auto output = report.add(
      {{"output, 2 ranks", "farandole", Side::kOurs, 400'000'000, {2, 2}, {.whole = 4'000'000}}});
  EXPECT_THAT(LaunchReport::text(output[0]), HasSubstr("    200  all 4000000 whole"));
  const std::string csv = report.csv();
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 6);
  EXPECT_THAT(csv, HasSubstr("\"start, 2 ranks\",farandole,farandole,3,2,"));
  EXPECT_THAT(csv, HasSubstr(",0.5,quick\n"));
  EXPECT_THAT(report.json(), HasSubstr("\"failure\": \"gone\""));
  EXPECT_THAT(report.json(), HasSubstr("\"slow\": 4.5"));
}

}  // namespace
}  // namespace farandole::bench
