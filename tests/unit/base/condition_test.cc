#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "base/mutex.h"

namespace farandole {
namespace {

constexpr Duration kLong = std::chrono::seconds(30);

// Waiter and waker hand a number to and fro: each turn needs a wake-up that must not be lost.
TEST(Condition, NoWakeUpIsLost) {
  constexpr int kTurns = 5'000;
  Mutex mutex;
  Condition changed;
  int turn = 0;
  const auto play = [&](int mine) {
    const Deadline deadline = Deadline::after(kLong);
    const MutexLock lock(mutex);
    while (turn < kTurns) {
      while (turn < kTurns && turn % 2 != mine && !deadline.passed()) changed.wait(mutex, deadline);
      if (deadline.passed()) return;
      if (turn < kTurns) ++turn;
      changed.notifyAll();
    }
  };
  std::thread other([&] { play(1); });
  play(0);
  other.join();
  EXPECT_EQ(turn, kTurns);
}

TEST(Condition, WakesEverybodyWhoWaits) {
  constexpr int kThreads = 6;
  Mutex mutex;
  Condition changed;
  int waiting = 0;
  bool open = false;
  int passed = 0;
  const Deadline deadline = Deadline::after(kLong);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      const MutexLock lock(mutex);
      ++waiting;
      changed.notifyAll();
      while (!open && !deadline.passed()) changed.wait(mutex, deadline);
      if (open) ++passed;
    });
  }
  {
    const MutexLock lock(mutex);
    while (waiting < kThreads && !deadline.passed()) changed.wait(mutex, deadline);
    open = true;
  }
  changed.notifyAll();
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(passed, kThreads);
}

TEST(Condition, ReturnsAtTheDeadlineWithTheMutexHeld) {
  Mutex mutex;
  Condition never;
  const MutexLock lock(mutex);
  const Deadline deadline = Deadline::after(std::chrono::milliseconds(5));
  while (!deadline.passed()) never.wait(mutex, deadline);
  std::thread([&] { EXPECT_FALSE(mutex.try_lock()); }).join();
}

}  // namespace
}  // namespace farandole
