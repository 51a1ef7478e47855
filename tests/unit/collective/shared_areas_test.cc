#include "collective/shm/shared_areas.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <optional>

#include "unit/collective/local_group.h"

namespace farandole::testing {
namespace {

using collective::shm::SharedAreas;

using namespace std::chrono_literals;

constexpr std::size_t kBytes = std::size_t{1} << 20;

// Rank 0's area, as all members see it.
SharedAreas::UsePtr shared(GroupMember& member, SharedAreas& areas,
                           collective::Communicator& world) {
  SharedAreas::UsePtr use;
  std::int64_t offset = 0;
  if (member.rank() == 0) {
    use = std::move(areas.make(kBytes, member.size())).value();
    offset = static_cast<std::int64_t>(member.neighbourhood().offsetOf(use->data()));
  }
  const collective::Piece piece{&offset, &offset, 1};
  EXPECT_TRUE(member.wait(world.broadcast(std::span(&piece, 1), DType::kInt64, 0)).ok());
  if (!use) use = std::move(areas.join(0, static_cast<std::uint64_t>(offset), kBytes)).value();
  return use;
}

TEST(SharedAreas, AreFreedWhenTheLastMemberHasLeft) {
  runGroup(3, [](GroupMember& member) {
    const auto world = member.world();
    SharedAreas areas(member.neighbourhood());
    const machine::Arena& arena = member.neighbourhood().arena();
    for (int last = 0; last < 3; ++last) {
      SharedAreas::UsePtr use = shared(member, areas, *world);
      const std::byte* const data = use->data();
      use->data()[member.rank()] = std::byte{1};
      if (member.rank() != last) use.reset();
      EXPECT_TRUE(member.wait(world->barrier()).ok());
      areas.collect();
      EXPECT_TRUE(member.rank() != 0 || arena.owns(data, kBytes));
      EXPECT_TRUE(member.wait(world->barrier()).ok());
      use.reset();
      EXPECT_TRUE(member.wait(world->barrier()).ok());
      areas.collect();
      EXPECT_FALSE(member.rank() == 0 && arena.owns(data, kBytes));
    }
    member.markDone();
  });
}

TEST(SharedAreas, OfARankThatWasLostAreNeverUsedAgain) {
  GroupOptions options;
  options.mayBeKilled = {1};
  runGroup(
      2,
      [](GroupMember& member) {
        const auto world = member.world();
        SharedAreas areas(member.neighbourhood());
        SharedAreas::UsePtr use = shared(member, areas, *world);
        if (member.rank() == 1) ::kill(::getpid(), SIGKILL);
        for (int i = 0; i < 10'000 && !member.neighbourhood().failed(); ++i) ::usleep(1000);
        EXPECT_TRUE(member.neighbourhood().failed());
        const std::byte* const data = use->data();
        use.reset();
        areas.collect();
        EXPECT_TRUE(member.neighbourhood().arena().owns(data, kBytes));
        const auto next = areas.make(kBytes, 1);
        ASSERT_TRUE(next.ok());
        EXPECT_NE(std::as_const(next).value()->data(), data);
        member.markDone();
      },
      options);
}

TEST(SharedAreas, OutsideOfTheArenaAreRefused) {
  runGroup(2, [](GroupMember& member) {
    SharedAreas areas(member.neighbourhood());
    const std::size_t capacity = member.neighbourhood().arena().capacity();
    for (const std::uint64_t offset : {capacity - kBytes, std::uint64_t{1}, UINT64_MAX}) {
      EXPECT_FALSE(areas.join(1 - member.rank(), offset, kBytes).ok());
    }
    member.markDone();
  });
}

}  // namespace
}  // namespace farandole::testing
