// A rank is killed at any moment: everyone else learns it, by name, within a second.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <time.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <sstream>

#include "multiproc/core/job.h"

namespace farandole::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

#if defined(FARANDOLE_ASAN) || defined(FARANDOLE_TSAN)
constexpr std::int64_t kKnownWithinMs = 2000;
constexpr int kKills = 8;  // a rank needs a second to start there
constexpr int kStarts = 10;
#else
constexpr std::int64_t kKnownWithinMs = 1000;
constexpr int kKills = 40;
constexpr int kStarts = 30;
#endif
constexpr int kPeerLost = 4;

std::int64_t monotonicNanoseconds() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

void sleepMicroseconds(std::int64_t microseconds) {
  std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
}

struct Loss {
  std::int64_t at = 0;
  int code = -1;
  int rank = -1;
  std::string message;
};

// The line "lost at=… code=… rank=… message=…".
bool parseLoss(const std::string& output, Loss& loss) {
  const auto start = output.find("lost at=");
  if (start == std::string::npos) return false;
  char message[512] = "";
  const int fields =
      std::sscanf(output.c_str() + start, "lost at=%ld code=%d rank=%d message=%511[^\n]", &loss.at,
                  &loss.code, &loss.rank, message);
  loss.message = message;
  return fields == 4;
}

std::set<std::string> sharedMemoryFiles() {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    names.insert(entry.path().filename().string());
  }
  return names;
}

// Everything a process has mapped, so that nothing of it can be left behind under a name.
std::string mapsOf(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/maps");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

void expectEveryoneKnows(const std::vector<Job::RankResult>& results, int victim, int code,
                         std::int64_t killedAt) {
  for (int rank = 0; rank < static_cast<int>(results.size()); ++rank) {
    const auto& result = results[static_cast<std::size_t>(rank)];
    if (rank == victim) {
      EXPECT_TRUE(result.signalled && result.code == SIGKILL) << result.output;
      continue;
    }
    EXPECT_TRUE(result.ended && !result.signalled && result.code == code)
        << "rank " << rank << " ended with " << result.code << ":\n"
        << result.output;
    Loss loss;
    if (!parseLoss(result.output, loss)) {
      ADD_FAILURE() << "rank " << rank << " does not know:\n" << result.output;
      continue;
    }
    EXPECT_EQ(loss.code, kPeerLost) << result.output;
    EXPECT_EQ(loss.rank, victim) << result.output;
    EXPECT_THAT(loss.message, HasSubstr("signal 9"));
    EXPECT_LE((loss.at - killedAt) / 1'000'000, kKnownWithinMs) << result.output;
  }
}

// Rounds of one kind; the parameter seeds them. Several tests, so that they can run side by side.
class Kill : public ::testing::TestWithParam<int> {};

TEST_P(Kill, AtAnyMomentIsKnownToAllWithinASecond) {
  std::mt19937 random(static_cast<unsigned>(GetParam()));
  for (int round = 0; round < kKills && !HasFailure(); ++round) {
    const int ranks = 2 + static_cast<int>(random() % 2);
    const int victim = static_cast<int>(random() % static_cast<unsigned>(ranks));
    const char* memory = random() % 2 == 0 ? "ordinary" : "shared";
    const char* children = random() % 2 == 0 ? "forked" : "alone";
    const char* ending = random() % 2 == 0 ? "leave" : "crash";
    SCOPED_TRACE("round " + std::to_string(round) + ": " + std::to_string(ranks) + " ranks, " +
                 memory + ", " + children + ", " + ending + ", victim " + std::to_string(victim));
    Job job({ranks,
             {"allreduce_until_lost", memory, children, ending, std::to_string(random() % 1000)}});
    ASSERT_TRUE(job.waitForLineEverywhere("ready")) << troubleWith(job.finish());
    sleepMicroseconds(random() % 30'000);
    const std::string maps = mapsOf(job.pid(victim));
    EXPECT_THAT(maps, HasSubstr("core_rank"));
    EXPECT_THAT(maps, Not(HasSubstr("/dev/shm/")));
    const std::int64_t killedAt = monotonicNanoseconds();
    job.kill(victim, SIGKILL);
    expectEveryoneKnows(job.finish(), victim, ending == std::string("crash") ? 3 : 0, killedAt);
  }
  for (const auto& name : sharedMemoryFiles()) EXPECT_THAT(name, Not(HasSubstr("farandole")));
}
INSTANTIATE_TEST_SUITE_P(Rounds, Kill, ::testing::Range(1, 6));

#ifdef FARANDOLE_HAS_GLOO
// Gloo blocks, in a thread of its own: it is not waited for.
TEST(KillOnGloo, AtAnyMomentIsKnownToAllWithinASecond) {
  std::mt19937 random(7);
  for (int round = 0; round < 15 && !HasFailure(); ++round) {
    const int victim = static_cast<int>(random() % 3);
    SCOPED_TRACE("round " + std::to_string(round) + ", victim " + std::to_string(victim));
    Job job({3,
             {"allreduce_until_lost", "ordinary", "alone", "leave", std::to_string(round)},
             {{"FARANDOLE_HIERARCHY", "off"}, {"FARANDOLE_ENGINE", "gloo"}}});
    ASSERT_TRUE(job.waitForLineEverywhere("ready")) << troubleWith(job.finish());
    sleepMicroseconds(random() % 30'000);
    const std::int64_t killedAt = monotonicNanoseconds();
    job.kill(victim, SIGKILL);
    expectEveryoneKnows(job.finish(), victim, 0, killedAt);
  }
}
#endif

TEST(KillWhileStarting, EndsEveryonesInit) {
  std::mt19937 random(99);
  for (int round = 0; round < kStarts && !HasFailure(); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const int victim = static_cast<int>(random() % 3);
    Job job({3, {"allreduce_until_lost", "ordinary", "alone", "leave", std::to_string(round)}});
    sleepMicroseconds(random() % 12'000);
    const std::int64_t killedAt = monotonicNanoseconds();
    job.kill(victim, SIGKILL);
    const auto results = job.finish();
    // Those who were not even running when it happened learn it when they come.
    for (int rank = 0; rank < 3; ++rank) {
      const auto& result = results[static_cast<std::size_t>(rank)];
      if (rank == victim) continue;
      EXPECT_TRUE(result.ended && !result.signalled && result.code == 0) << result.output;
      Loss loss;
      ASSERT_TRUE(parseLoss(result.output, loss)) << result.output;
      EXPECT_EQ(loss.code, kPeerLost) << result.output;
      EXPECT_EQ(loss.rank, victim) << result.output;
      EXPECT_GE(loss.at, killedAt);
    }
  }
}

}  // namespace
}  // namespace farandole::test
