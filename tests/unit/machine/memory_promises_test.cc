#include "machine/memory_promises.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <thread>
#include <vector>

namespace farandole::testing {
namespace {

using machine::MemoryPromises;

using ::testing::HasSubstr;
using namespace std::chrono_literals;

constexpr std::size_t kMiB = std::size_t{1} << 20;

// Threads as ranks of a machine whose memory is a number.
class Machine {
 public:
  explicit Machine(std::size_t bytes) : bytes_(bytes) {}

  MemoryPromises promisesOf(int rank, int ranks) {
    MemoryPromises::Options options;
    options.me = rank;
    options.ranks = ranks;
    options.available = [this] {
      const std::size_t used = used_;
      return used < bytes_ ? bytes_ - used : 0;
    };
    options.ended = [this](int which) { return dead_ == which; };
    options.timeout = 20s;
    return MemoryPromises(board_, std::move(options));
  }

  // Takes it little by little, as the kernel does.
  Status take(std::size_t bytes) {
    for (std::size_t taken = 0; taken < bytes; taken += bytes / 8) {
      used_ += bytes / 8;
      std::this_thread::sleep_for(200us);
    }
    if (used_ > bytes_) overdrawn_ = true;
    return {};
  }

  // How many of the ranks get so many bytes each, all at the same moment.
  int together(int ranks, std::size_t bytes) {
    std::barrier start(ranks);
    std::atomic<int> got{0};
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] {
        MemoryPromises promises = promisesOf(rank, ranks);
        start.arrive_and_wait();
        const Status status = promises.reserve(
            bytes, [&] { return take(bytes); }, [&] { used_ -= bytes; });
        EXPECT_TRUE(status.ok() || status.code() == Code::kOutOfMemory) << status.message();
        if (status.ok()) ++got;
      });
    }
    for (auto& thread : threads) thread.join();
    return got;
  }

  const std::size_t bytes_;
  machine::PromiseBoard board_{};
  std::atomic<std::size_t> used_{0};
  std::atomic<bool> overdrawn_{false};
  std::atomic<int> dead_{-1};
};

TEST(MemoryPromises, AreNeverMoreThanThereIs) {
  for (int round = 0; round < 100; ++round) {
    Machine machine(512 * kMiB);
    EXPECT_LE(machine.together(4, 320 * kMiB), 1);
    EXPECT_FALSE(machine.overdrawn_);
  }
}

TEST(MemoryPromises, OfRanksThatDoNotFitTogetherAreRefusedToAll) {
  Machine machine(512 * kMiB);
  MemoryPromises first = machine.promisesOf(0, 2);
  MemoryPromises second = machine.promisesOf(1, 2);
  Status later;
  std::thread other;
  // The second comes while the first reserves, when nothing of it is taken yet.
  const Status status = first.reserve(
      320 * kMiB,
      [&] {
        other = std::thread([&] {
          later = second.reserve(
              320 * kMiB, [&] { return machine.take(320 * kMiB); },
              [&] { machine.used_ -= 320 * kMiB; });
        });
        while (machine.board_.words[1] == 0) std::this_thread::yield();
        return machine.take(320 * kMiB);
      },
      [&] { machine.used_ -= 320 * kMiB; });
  other.join();
  EXPECT_EQ(status.code(), Code::kOutOfMemory);
  EXPECT_EQ(later.code(), Code::kOutOfMemory);
  EXPECT_EQ(machine.used_, 0U);
}

TEST(MemoryPromises, RefuseNothingThatFits) {
  for (int round = 0; round < 50; ++round) {
    Machine machine(512 * kMiB);
    EXPECT_EQ(machine.together(4, 128 * kMiB), 4);
    EXPECT_FALSE(machine.overdrawn_);
  }
}

TEST(MemoryPromises, SayWhatIsWantedAndWhatThereIs) {
  Machine machine(100 * kMiB);
  MemoryPromises promises = machine.promisesOf(0, 1);
  const Status status = promises.reserve(
      101 * kMiB, [] { return Status(); }, [] {});
  EXPECT_EQ(status.code(), Code::kOutOfMemory);
  EXPECT_THAT(status.message(), HasSubstr("101.0 MiB wanted, 100.0 MiB available"));
}

TEST(MemoryPromises, OfARankThatDiedDoNotCount) {
  Machine machine(512 * kMiB);
  MemoryPromises other = machine.promisesOf(1, 2);
  MemoryPromises own = machine.promisesOf(0, 2);
  // It dies while it reserves, and this rank waits for it.
  const auto reserve = [&] {
    std::thread killer([&] {
      std::this_thread::sleep_for(20ms);
      machine.dead_ = 1;
    });
    const Status mine = own.reserve(
        320 * kMiB, [] { return Status(); }, [] {});
    killer.join();
    return mine;
  };
  const Status status = other.reserve(320 * kMiB, reserve, [] {});
  EXPECT_TRUE(status.ok()) << status.message();
}

}  // namespace
}  // namespace farandole::testing
