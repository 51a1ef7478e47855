// The timeline of a whole job: one file, valid JSON, events of every rank.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "multiproc/core/job.h"

namespace farandole::test {
namespace {

class TimelineOfAJob : public ::testing::Test {
 protected:
  TimelineOfAJob()
      : folder_(std::filesystem::temp_directory_path() /
                ("farandole-timeline-" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~TimelineOfAJob() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  const std::filesystem::path folder_;
};

TEST_F(TimelineOfAJob, HasEventsOfEveryRankAndTensor) {
  const std::string path = folder_ / "trace.json";
  ASSERT_EQ(runCase({3, {"random_order", "20", "3"}, {{"FARANDOLE_TIMELINE", path}}}), "");
  std::ifstream file(path);
  const auto trace = nlohmann::json::parse(file);  // throws unless the array was completed
  std::set<int> ranks;
  std::map<int, int> engine;
  std::map<int, int> tensors;
  for (const auto& event : trace) {
    if (event.value("ph", "") != "X") continue;
    const int rank = event.at("pid").get<int>();
    ranks.insert(rank);
    EXPECT_GE(event.at("dur").get<double>(), 0.0);
    ++(event.at("cat") == "engine" ? engine : tensors)[rank];
  }
  EXPECT_EQ(ranks, (std::set<int>{0, 1, 2}));
  for (const int rank : {0, 1, 2}) {
    EXPECT_GT(engine[rank], 0);
    EXPECT_GE(tensors[rank], 20 * 3);
    EXPECT_EQ(engine[rank], engine[0]) << "all ranks execute the same log";
  }
}

TEST_F(TimelineOfAJob, ThatCannotBeWrittenIsAnErrorOnEveryRank) {
  const std::string path = folder_ / "missing" / "trace.json";
  Job job({2, {"init_only"}, {{"FARANDOLE_TIMELINE", path}}});
  for (const auto& result : job.finish()) {
    EXPECT_THAT(result.output, ::testing::HasSubstr(path));
  }
}

}  // namespace
}  // namespace farandole::test
