// What ranks say, and survive, when threads, open files or memory are short.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "multiproc/core/job.h"

namespace farandole::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using namespace std::chrono_literals;

TEST(FewThreads, AreNamedAndSignalsStayAsTheyWere) {
  Job job({1, {"init_without_threads"}});
  const auto results = job.finish();
  EXPECT_EQ(troubleWith(results), "");
  EXPECT_THAT(results[0].output, HasSubstr("cannot start a thread"));
  EXPECT_THAT(results[0].output, HasSubstr("ulimit -u"));
}

TEST(FewThreads, AreToldToWhoeverAsksForACallback) {
  EXPECT_EQ(runCase({1, {"callback_without_threads"}}), "");
}

TEST(FewFiles, AreNamedOnEveryRank) {
  Job job({4, {"few_files", "14", "-1"}});
  const auto results = job.finish();
  EXPECT_EQ(troubleWith(results), "");
  for (const auto& result : results) {
    EXPECT_THAT(result.output, HasSubstr("this process may have 14 open files (ulimit -n)"));
    EXPECT_THAT(result.output, HasSubstr("needs "));
  }
}

class OneWithFewFiles : public ::testing::TestWithParam<int> {};
TEST_P(OneWithFewFiles, IsNamedOnEveryRank) {
  const std::string limited = std::to_string(GetParam());
  Job job({3, {"few_files", "14", limited}});
  const auto results = job.finish();
  EXPECT_EQ(troubleWith(results), "");
  for (const auto& result : results) {
    EXPECT_THAT(result.output, HasSubstr("local rank " + limited + " needs "));
    EXPECT_THAT(result.output, HasSubstr("ulimit -n"));
  }
}
INSTANTIATE_TEST_SUITE_P(Rank, OneWithFewFiles, ::testing::Values(0, 2));

TEST(FewFiles, AreEnoughIfTheySuffice) {
  Job job({4, {"few_files", "32", "-1"}});
  for (const auto& result : job.finish()) EXPECT_THAT(result.output, HasSubstr("initialised"));
}

TEST(FewFiles, LaterDoNotHideADeath) {
  Job job({4, {"wait_with_few_files"}});
  ASSERT_TRUE(job.waitForLineEverywhere("ready"));
  // A look around between: the limit holds by then.
  std::this_thread::sleep_for(600ms);
  job.kill(3, SIGKILL);
  const auto results = job.finish(20s);
  for (int rank = 0; rank < 3; ++rank) {
    const auto& result = results[static_cast<std::size_t>(rank)];
    EXPECT_TRUE(result.ended && result.code == 0) << result.output;
    EXPECT_THAT(result.output, HasSubstr("rank 3 on testhost"));
  }
}

// A group of processes with little memory, which is removed with its last process.
class MemoryGroup {
 public:
  explicit MemoryGroup(std::size_t bytes) {
    namespace fs = std::filesystem;
    const std::string name = "farandole-test-" + std::to_string(::getpid());
    // Of version 1, where each controller has a tree of its own, or 2, where it must be passed on.
    const bool second = fs::exists("/sys/fs/cgroup/cgroup.controllers");
    if (second) write("/sys/fs/cgroup/cgroup.subtree_control", "+memory");
    const fs::path folder = fs::path(second ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory") / name;
    std::error_code error;
    if (!fs::create_directory(folder, error)) return;
    folder_ = folder;
    const fs::path limit = folder / (second ? "memory.max" : "memory.limit_in_bytes");
    write(limit, std::to_string(bytes));
    std::size_t is = 0;
    std::ifstream(limit) >> is;
    if (is != bytes) remove();
  }
  ~MemoryGroup() { remove(); }
  MemoryGroup(const MemoryGroup&) = delete;
  MemoryGroup& operator=(const MemoryGroup&) = delete;

  bool made() const { return !folder_.empty(); }
  std::string processes() const { return folder_ / "cgroup.procs"; }

 private:
  static void write(const std::filesystem::path& file, const std::string& text) {
    std::ofstream(file) << text;
  }
  void remove() {
    // The kernel lets go of the last process a moment after it was reaped.
    for (int i = 0; i < 200 && made(); ++i) {
      if (::rmdir(folder_.c_str()) == 0) folder_.clear();
      if (made()) std::this_thread::sleep_for(10ms);
    }
  }
  std::filesystem::path folder_;
};

TEST(LittleMemory, IsRefusedToRanksThatWantItAtTheSameMoment) {
  const MemoryGroup group(std::size_t{512} << 20);
  ASSERT_TRUE(group.made()) << "a cgroup with a limit of memory is needed, and root to make it";
  constexpr int kRounds = 3;
  Job job({2,
           {"allocate_together", std::to_string(std::size_t{320} << 20), group.processes(),
            std::to_string(kRounds)}});
  const auto results = job.finish();
  EXPECT_EQ(troubleWith(results), "");
  const std::string said = results[0].output + results[1].output;
  const auto count = [&said](const std::string& text) {
    int found = 0;
    for (auto at = said.find(text); at != std::string::npos; at = said.find(text, at + 1)) ++found;
    return found;
  };
  EXPECT_LE(count("allocated"), kRounds);
  EXPECT_GE(count("refused: "), kRounds);
  // What fits is not refused.
  Job small(
      {2, {"allocate_together", std::to_string(std::size_t{160} << 20), group.processes(), "1"}});
  const auto fit = small.finish();
  EXPECT_EQ(troubleWith(fit), "");
  for (const auto& result : fit) EXPECT_THAT(result.output, Not(HasSubstr("refused")));
}

}  // namespace
}  // namespace farandole::test
