#include "machine/neighbourhood.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "unit/collective/local_group.h"

namespace farandole::testing {
namespace {

using machine::Arena;
using machine::Neighbourhood;

using namespace std::chrono_literals;

std::vector<UniqueFd> ownPidfds(std::size_t count) {
  std::vector<UniqueFd> fds;
  for (std::size_t i = 0; i < count; ++i) {
    fds.emplace_back(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  }
  return fds;
}

std::unique_ptr<Arena> makeArena() {
  return std::move(Arena::create(std::size_t{4} << 20)).value();
}

TEST(Neighbourhood, RefusesAnUnsealedArena) {
  auto own = makeArena();
  std::vector<UniqueFd> arenas;
  arenas.emplace_back(::dup(own->fd()));
  arenas.emplace_back(::memfd_create("unsealed", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(arenas[1].get(), 1 << 20), 0);
  const auto result = Neighbourhood::create(std::move(own), 0, 1, std::move(arenas), ownPidfds(2),
                                            Deadline::after(1s));
  EXPECT_EQ(result.status().code(), Code::kInvalidArgument) << result.status().message();
}

TEST(Neighbourhood, WaitsForRankZeroOnlyUntilTheDeadline) {
  auto zero = makeArena();
  auto own = makeArena();
  std::vector<UniqueFd> arenas;
  arenas.emplace_back(::dup(zero->fd()));
  arenas.emplace_back(::dup(own->fd()));
  const auto result = Neighbourhood::create(std::move(own), 1, 1, std::move(arenas), ownPidfds(2),
                                            Deadline::after(20ms));
  EXPECT_EQ(result.status().code(), Code::kTimeout);
}

TEST(Neighbourhood, RefusesAnotherEpoch) {
  auto zero = makeArena();
  auto one = makeArena();
  std::vector<UniqueFd> forZero;
  std::vector<UniqueFd> forOne;
  for (const Arena* arena : {zero.get(), one.get()}) {
    forZero.emplace_back(::dup(arena->fd()));
    forOne.emplace_back(::dup(arena->fd()));
  }
  const auto first = Neighbourhood::create(std::move(zero), 0, 7, std::move(forZero), ownPidfds(2),
                                           Deadline::after(1s));
  ASSERT_TRUE(first.ok());
  const auto second = Neighbourhood::create(std::move(one), 1, 8, std::move(forOne), ownPidfds(2),
                                            Deadline::after(1s));
  EXPECT_EQ(second.status().code(), Code::kMismatch) << second.status().message();
}

TEST(Neighbourhood, AddressesAreChecked) {
  runGroup(2, [](GroupMember& member) {
    Neighbourhood& n = member.neighbourhood();
    const std::size_t capacity = n.arena().capacity();
    EXPECT_NE(n.at(0, 0, 100), nullptr);
    EXPECT_NE(n.at(1, capacity - 10, 10), nullptr);
    EXPECT_EQ(n.at(1, capacity - 10, 11), nullptr);
    EXPECT_EQ(n.at(0, ~std::uint64_t{0}, 1), nullptr);
    EXPECT_EQ(n.at(0, 1, ~std::uint64_t{0}), nullptr);
    EXPECT_EQ(n.at(2, 0, 1), nullptr);
    EXPECT_EQ(n.at(-1, 0, 1), nullptr);
  });
}

// Sleepers are never missed: a long ping-pong in which each rank sleeps between all its turns.
TEST(Neighbourhood, RingWakesTheSleeper) {
  runGroup(2, [](GroupMember& member) {
    Neighbourhood& n = member.neighbourhood();
    auto* turn =
        reinterpret_cast<std::atomic<int>*>(n.at(0, sizeof(machine::NeighbourhoodHeader), 64));
    auto* rung = turn + 1;
    int longSleeps = 0;
    if (member.rank() == 0) {
      ASSERT_TRUE(n.arena().allocate(64).ok());
    }
    for (int i = 0; i < 20000; ++i) {
      if (i % 2 == member.rank()) {
        turn->store(i + 1, std::memory_order_release);
        n.ring(1 - member.rank());
        rung->store(i + 1, std::memory_order_release);
        continue;
      }
      const Deadline deadline = Deadline::after(20s);
      while (turn->load(std::memory_order_acquire) <= i) {
        ASSERT_FALSE(deadline.passed());
        const std::uint32_t seen = n.announceSleep();
        if (turn->load(std::memory_order_acquire) <= i) {
          const TimePoint before = Clock::now();
          n.sleep(seen, deadline);
          // It had announced its sleep before the turn: whoever rang then has seen that.
          if (rung->load(std::memory_order_acquire) > i) {
            ASSERT_NE(n.announceSleep(), seen) << i;
          }
          // One that was rung and slept on ends by itself after a second; so does one whose
          // neighbour was kept from running, but not often.
          if (Clock::now() - before > 900ms) {
            ASSERT_LE(++longSleeps, 5) << i;
          }
        }
        n.awake();
      }
    }
  });
}

TEST(Neighbourhood, FailWakesTheSleeperAndTheFirstStatusStays) {
  auto own = makeArena();
  std::vector<UniqueFd> arenas;
  arenas.emplace_back(::dup(own->fd()));
  auto n = Neighbourhood::create(std::move(own), 0, 1, std::move(arenas), ownPidfds(1),
                                 Deadline::after(1s));
  ASSERT_TRUE(n.ok());
  std::thread failer([&] {
    std::this_thread::sleep_for(50ms);
    (*n)->fail(Status(Code::kPeerLost, "first"));
    (*n)->fail(Status(Code::kInternal, "second"));
  });
  const Deadline deadline = Deadline::after(20s);
  while (!(*n)->failed() && !deadline.passed()) {
    const std::uint32_t seen = (*n)->announceSleep();
    (*n)->sleep(seen, deadline);
    (*n)->awake();
  }
  failer.join();
  EXPECT_TRUE((*n)->failed());
  EXPECT_EQ((*n)->failure().message(), "first");
}

}  // namespace
}  // namespace farandole::testing
