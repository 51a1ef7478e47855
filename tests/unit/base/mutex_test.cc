#include "base/mutex.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

namespace farandole {
namespace {

TEST(Mutex, OneAtATime) {
  constexpr int kThreads = 8;
  constexpr int kTurns = 20'000;
  Mutex mutex;
  std::int64_t count = 0;  // not atomic: threads that are inside together lose some
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int turn = 0; turn < kTurns; ++turn) {
        const MutexLock lock(mutex);
        ++count;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(count, std::int64_t{kThreads} * kTurns);
}

TEST(Mutex, TryLockSaysWhetherItWasFree) {
  Mutex mutex;
  ASSERT_TRUE(mutex.try_lock());
  std::thread([&] { EXPECT_FALSE(mutex.try_lock()); }).join();
  mutex.unlock();
  std::thread([&] {
    EXPECT_TRUE(mutex.try_lock());
    mutex.unlock();
  }).join();
}

// Held for so long that the others fall asleep; each must be woken by the one before it.
TEST(Mutex, SleepersAreWokenOneAfterTheOther) {
  constexpr int kThreads = 6;
  Mutex mutex;
  std::atomic<int> arrived{0};
  int served = 0;
  std::vector<std::thread> threads;
  {
    const MutexLock lock(mutex);
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        ++arrived;
        const MutexLock own(mutex);
        ++served;
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      });
    }
    while (arrived < kThreads) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(served, 0);
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(served, kThreads);
}

TEST(MutexLock, LetsGoAndTakesAgain) {
  Mutex mutex;
  const auto isFree = [&] {
    bool free = false;
    std::thread([&] {
      free = mutex.try_lock();
      if (free) mutex.unlock();
    }).join();
    return free;
  };
  {
    MutexLock lock(mutex);
    EXPECT_FALSE(isFree());
    {
      const MutexUnlock unlocked(mutex);
      EXPECT_TRUE(isFree());
    }
    EXPECT_FALSE(isFree());
    lock.unlock();
    EXPECT_TRUE(isFree());
    lock.lock();
    EXPECT_FALSE(isFree());
    lock.unlock();
  }
  EXPECT_TRUE(isFree());
}

}  // namespace
}  // namespace farandole
