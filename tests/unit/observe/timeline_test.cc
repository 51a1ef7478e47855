#include "observe/timeline.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>
#include <vector>

namespace farandole::observe {
namespace {

using nlohmann::json;

class TimelineTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "timeline-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
    path_ = directory_ / "trace.json";
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string content() const {
    std::ifstream file(path_, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }
  // Closes the array and reads it back; throws, and so fails the test, if it is not JSON.
  json closedTrace() const {
    const Status status = Timeline::closeFile(path_);
    EXPECT_TRUE(status.ok()) << status.message();
    return json::parse(content());
  }
  static std::vector<json> select(const json& trace, std::string_view phase) {
    std::vector<json> events;
    for (const json& event : trace) {
      if (event.at("ph") == phase) events.push_back(event);
    }
    return events;
  }

  std::filesystem::path directory_;
  std::string path_;
};

TEST_F(TimelineTest, PreparedLinkIsNotFollowed) {
  const std::string precious = directory_ / "precious";
  std::ofstream(precious) << "mine";
  std::filesystem::create_symlink(precious, path_);
  std::filesystem::permissions(directory_, std::filesystem::perms::all);
  EXPECT_FALSE(Timeline::createFile(path_).ok());
  Timeline timeline;
  EXPECT_FALSE(timeline.start(path_, 0, "alpha").ok());
  EXPECT_EQ(content(), "mine");
  // One of this user's own, where nobody else could have made it.
  std::filesystem::permissions(directory_, std::filesystem::perms::owner_all);
  EXPECT_TRUE(Timeline::createFile(path_).ok());
  EXPECT_NE(content(), "mine");
}

TEST_F(TimelineTest, RecordsEventsOfOneRank) {
  Timeline timeline;
  EXPECT_FALSE(timeline.enabled());
  ASSERT_TRUE(timeline.start(path_, 3, "alpha").ok());
  EXPECT_TRUE(timeline.enabled());
  const TimelineArgument arguments[] = {{"bytes", 4096}, {"dtype", std::string_view("float32")}};
  timeline.event("grad.0", "allreduce", 1'000'500, 1'003'000, arguments, 2);
  timeline.mark("cycle", "conductor", 1'004'001);
  timeline.nameTrack(2, "engine");
  ASSERT_TRUE(timeline.stop().ok());
  EXPECT_FALSE(timeline.enabled());

  const json trace = closedTrace();
  const auto spans = select(trace, "X");
  ASSERT_EQ(spans.size(), 1u);
  EXPECT_EQ(spans[0].at("name"), "grad.0");
  EXPECT_EQ(spans[0].at("cat"), "allreduce");
  EXPECT_EQ(spans[0].at("ts"), 1000.5);
  EXPECT_EQ(spans[0].at("dur"), 2.5);
  EXPECT_EQ(spans[0].at("pid"), 3);
  EXPECT_EQ(spans[0].at("tid"), 2);
  EXPECT_EQ(spans[0].at("args"), json({{"bytes", 4096}, {"dtype", "float32"}}));
  const auto marks = select(trace, "i");
  ASSERT_EQ(marks.size(), 1u);
  EXPECT_EQ(marks[0].at("ts"), 1004.001);

  std::map<std::string, json> metadata;
  for (const json& event : select(trace, "M")) metadata[event.at("name")] = event;
  EXPECT_EQ(metadata["process_name"].at("args").at("name"), "rank 3 (alpha)");
  EXPECT_EQ(metadata["process_sort_index"].at("args").at("sort_index"), 3);
  EXPECT_EQ(metadata["thread_name"].at("args").at("name"), "engine");
}

TEST_F(TimelineTest, EscapesWhateverIsInANameAndRepairsBrokenUtf8) {
  const std::string nasty = std::string("a\"b\\c\n\t\x01/\u00e9") + '\0' + "z";
  Timeline timeline;
  ASSERT_TRUE(timeline.start(path_, 0).ok());
  const TimelineArgument arguments[] = {{"k\"", std::string_view(nasty)}};
  timeline.event(nasty, nasty, 0, 1, arguments);
  timeline.event("half \xc3", "x", 0, 1);
  timeline.event("\xff\xfe", "x", 0, 1);
  ASSERT_TRUE(timeline.stop().ok());
  const auto spans = select(closedTrace(), "X");
  ASSERT_EQ(spans.size(), 3u);
  EXPECT_EQ(spans[0].at("name"), nasty);
  EXPECT_EQ(spans[0].at("cat"), nasty);
  EXPECT_EQ(spans[0].at("args").at("k\""), nasty);
  EXPECT_EQ(spans[1].at("name"), "half \ufffd");
}

TEST_F(TimelineTest, NothingIsRecordedBeforeStartOrAfterStop) {
  Timeline timeline;
  timeline.event("early", "x", 0, 1);
  ASSERT_TRUE(timeline.start(path_, 0).ok());
  timeline.event("backwards", "x", 5000, 1000);
  ASSERT_TRUE(timeline.stop().ok());
  timeline.event("late", "x", 0, 1);
  timeline.flush();
  EXPECT_TRUE(timeline.stop().ok());
  const auto spans = select(closedTrace(), "X");
  ASSERT_EQ(spans.size(), 1u);
  EXPECT_EQ(spans[0].at("name"), "backwards");
  EXPECT_EQ(spans[0].at("dur"), 0.0);
}

TEST_F(TimelineTest, FlushShowsEventsOfARunningJob) {
  Timeline timeline;
  ASSERT_TRUE(timeline.start(path_, 0).ok());
  timeline.event("now", "x", 0, 1);
  timeline.flush();
  const std::string text = content();
  EXPECT_NE(text.find("\"now\""), std::string::npos);
  EXPECT_EQ(text.substr(0, 2), "[\n");
  EXPECT_EQ(text.substr(text.size() - 2), ",\n");
}

TEST_F(TimelineTest, TheLimitIsKeptAndSaidSo) {
  constexpr std::size_t kLimit = 10'000;
  Timeline timeline;
  ASSERT_TRUE(timeline.start(path_, 0, {}, kLimit).ok());
  for (int i = 0; i < 1000; ++i) timeline.event("some tensor", "allreduce", i, i + 1);
  EXPECT_FALSE(timeline.enabled());
  ASSERT_TRUE(timeline.stop().ok());
  EXPECT_LT(std::filesystem::file_size(path_), kLimit + 300);
  const json trace = closedTrace();
  EXPECT_GT(select(trace, "X").size(), 50u);
  EXPECT_LT(select(trace, "X").size(), 1000u);
  const auto marks = select(trace, "i");
  ASSERT_EQ(marks.size(), 1u);
  EXPECT_EQ(marks[0].at("name"), "timeline truncated");
  EXPECT_EQ(marks[0].at("args").at("limit_bytes"), kLimit);
}

TEST_F(TimelineTest, ThreadsOfOneRankRecordTogether) {
  constexpr int kThreads = 4;
  constexpr int kEvents = 2000;
  Timeline timeline;
  ASSERT_TRUE(timeline.start(path_, 0).ok());
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&timeline, t] {
      for (int i = 0; i < kEvents; ++i) {
        timeline.event("e" + std::to_string(i), "x", i, i + 1, {}, t);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(timeline.stop().ok());
  std::map<std::pair<int, std::string>, int> seen;
  for (const json& event : select(closedTrace(), "X")) {
    ++seen[{event.at("tid").get<int>(), event.at("name").get<std::string>()}];
  }
  EXPECT_EQ(seen.size(), static_cast<std::size_t>(kThreads * kEvents));
}

// What a rank's process does; its exit code says whether it went well.
int recordAsRank(const std::string& path, int rank, int events) {
  Timeline timeline;
  if (!timeline.start(path, rank).ok()) return 1;
  const std::string name = "tensor of rank " + std::to_string(rank);
  for (int i = 0; i < events; ++i) timeline.event(name, "allreduce", i * 1000, i * 1000 + 500);
  return timeline.stop().ok() ? 0 : 2;
}

TEST_F(TimelineTest, ProcessesShareOneFile) {
  constexpr int kRanks = 6;
  constexpr int kEvents = 5000;
  std::vector<pid_t> children;
  for (int rank = 0; rank < kRanks; ++rank) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) ::_exit(recordAsRank(path_, rank, kEvents));
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  const std::string text = content();
  EXPECT_EQ(text.find('['), 0u);
  EXPECT_EQ(text.find('[', 1), std::string::npos);
  std::map<int, int> events;
  for (const json& event : select(closedTrace(), "X")) {
    const int rank = event.at("pid");
    EXPECT_EQ(event.at("name"), "tensor of rank " + std::to_string(rank));
    ++events[rank];
  }
  ASSERT_EQ(events.size(), static_cast<std::size_t>(kRanks));
  for (const auto& [rank, count] : events) EXPECT_EQ(count, kEvents) << "rank " << rank;
}

// A data-loading worker must not repeat what its parent had collected.
TEST_F(TimelineTest, AForkChildWritesNothing) {
  Timeline timeline;
  ASSERT_TRUE(timeline.start(path_, 0).ok());
  timeline.event("parent", "x", 0, 1);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    timeline.event("child", "x", 0, 1);
    timeline.flush();
    ::_exit(timeline.stop().ok() ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ASSERT_TRUE(timeline.stop().ok());
  const auto spans = select(closedTrace(), "X");
  ASSERT_EQ(spans.size(), 1u);
  EXPECT_EQ(spans[0].at("name"), "parent");
}

TEST_F(TimelineTest, ErrorsNameThePath) {
  Timeline timeline;
  const std::string nowhere = (directory_ / "missing" / "trace.json").string();
  const Status status = timeline.start(nowhere, 0);
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find(nowhere), std::string::npos);
  EXPECT_FALSE(timeline.enabled());
  EXPECT_FALSE(timeline.start("", 0).ok());
  EXPECT_FALSE(timeline.start(directory_.string(), 0).ok());
  EXPECT_FALSE(Timeline::createFile(nowhere).ok());
  EXPECT_FALSE(Timeline::closeFile(nowhere).ok());
}

// A device has no size that could tell whether the array was begun.
TEST_F(TimelineTest, ADeviceIsRefused) {
  Timeline timeline;
  EXPECT_EQ(timeline.start("/dev/null", 0).code(), Code::kInvalidArgument);
  EXPECT_FALSE(timeline.enabled());
}

// In a process of its own, because the limit on file sizes holds for all its files.
int recordBeyondTheFileSizeLimit(const std::string& path) {
  std::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{100'000, 100'000};
  if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
  Timeline timeline;
  if (!timeline.start(path, 0).ok()) return 2;
  for (int i = 0; i < 5000; ++i) timeline.event("some tensor", "allreduce", i, i + 1);
  if (timeline.enabled()) return 3;
  const Status status = timeline.stop();
  if (status.ok() || status.message().find(path) == std::string::npos) return 4;
  return timeline.stop().ok() ? 0 : 5;  // said once
}

TEST_F(TimelineTest, AWriteThatFailsEndsTheRecordingAndStopSaysSo) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) ::_exit(recordBeyondTheFileSizeLimit(path_));
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(TimelineTest, SecondStartIsRefusedAndTheFirstGoesOn) {
  Timeline timeline;
  ASSERT_TRUE(timeline.start(path_, 0).ok());
  EXPECT_EQ(timeline.start(path_ + "2", 0).code(), Code::kInvalidArgument);
  EXPECT_TRUE(timeline.enabled());
  EXPECT_FALSE(std::filesystem::exists(path_ + "2"));
  ASSERT_TRUE(timeline.stop().ok());
  EXPECT_TRUE(timeline.start(path_, 0).ok());  // again, into the same file
}

TEST_F(TimelineTest, AFinishedFileIsNotContinuedButReplaced) {
  Timeline timeline;
  ASSERT_TRUE(timeline.start(path_, 0).ok());
  ASSERT_TRUE(timeline.stop().ok());
  ASSERT_TRUE(Timeline::closeFile(path_).ok());
  EXPECT_EQ(timeline.start(path_, 0).code(), Code::kInvalidArgument);
  EXPECT_FALSE(Timeline::closeFile(path_).ok());
  ASSERT_TRUE(Timeline::createFile(path_).ok());
  ASSERT_TRUE(timeline.start(path_, 7).ok());
  ASSERT_TRUE(timeline.stop().ok());
  EXPECT_EQ(select(closedTrace(), "M").front().at("pid"), 7);
}

}  // namespace
}  // namespace farandole::observe
