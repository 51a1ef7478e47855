// A member is killed in the middle of its work: the operations of all others end with its name.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <thread>

#include "unit/collective/hierarchy/machines_group.h"

namespace farandole::testing {
namespace {

using namespace std::chrono_literals;

collective::OperationPtr start(collective::Communicator& hierarchy, int kind, float* values,
                               std::int64_t count) {
  const int members = hierarchy.size();
  const std::vector<std::int64_t> counts(static_cast<std::size_t>(members), count / members);
  const collective::Piece piece{values, values, count};
  switch (kind) {
    case 0: return hierarchy.allreduce(std::span(&piece, 1), DType::kFloat32, ReduceOp::kMax, {});
    case 1: return hierarchy.broadcast(std::span(&piece, 1), DType::kFloat32, 1);
    case 2: {
      const std::int64_t own = hierarchy.member() * (count / members);
      return hierarchy.allgather(values + own, values, counts, DType::kFloat32);
    }
    case 3:
      return hierarchy.reducescatter(values, values + count, counts, DType::kFloat32,
                                     ReduceOp::kMax, {});
    default: return hierarchy.barrier();
  }
}

void killRound(int round) {
  const MachineLayout layout{"", {0, 1, 1, 0, 1}, {}};
  const int victim = round % layout.members();  // carriers and others
  GroupOptions options;
  options.mayBeKilled = {victim};
  options.limit = 30s;
  runGroup(
      layout.members(),
      [&](GroupMember& member) {
        auto hierarchy = makeTestHierarchy(member, layout);
        Dice dice(static_cast<std::uint64_t>(round));
        const std::int64_t count = 10 + dice.upTo(60'000);
        auto* values =
            static_cast<float*>(member.memory(static_cast<std::size_t>(count) * 8, round % 2 == 1));
        std::fill_n(values, 2 * count, 1.0F);
        std::thread killer;
        if (member.rank() == victim) {
          killer = std::thread([&] {
            std::this_thread::sleep_for(std::chrono::microseconds(500 + 977 * (round % 7)));
            ::kill(::getpid(), SIGKILL);
          });
        }
        const Deadline deadline = Deadline::after(20s);
        Status status;
        for (int kind = round % 5; status.ok() && !deadline.passed(); kind = (kind + 1) % 5) {
          status = member.wait(start(*hierarchy, kind, values, count));
        }
        if (killer.joinable()) killer.join();
        EXPECT_EQ(status.code(), Code::kPeerLost) << status.message();
        EXPECT_EQ(status.rank(), victim);
        // Later operations say the same, at once.
        for (int kind = 0; kind < 5; ++kind) {
          const collective::OperationPtr later = start(*hierarchy, kind, values, count);
          EXPECT_EQ(later->progress(), collective::Progress::kFailed);
          EXPECT_EQ(later->status().rank(), victim);
        }
        EXPECT_EQ(hierarchy->send(values, 4, 0, 1)->progress(), collective::Progress::kFailed);
      },
      options);
}

TEST(HierarchyDeath, AKilledMemberEndsEverybodysOperation) {
  for (int round = 0; round < 10; ++round) killRound(round);
}

// Operations of all kinds in a row, nobody waits for the others in between, some are late.
TEST(HierarchyOrder, MembersMayBeOneOperationApart) {
  const MachineLayout layout{"", {1, 0, 0, 1, 1}, {}};
  runGroup(layout.members(), [&](GroupMember& member) {
    auto hierarchy = makeTestHierarchy(member, layout);
    Dice same(808);
    Dice own(static_cast<std::uint64_t>(member.rank()));
    std::vector<float> values(40'000);
    for (int round = 0; round < 100; ++round) {
      const std::int64_t count = 5 * (1 + same.upTo(same.coin() ? 10 : 4000));
      std::fill(values.begin(), values.end(), 2.0F);
      if (own.upTo(20) == 0) std::this_thread::sleep_for(1ms);
      const Status status =
          member.wait(start(*hierarchy, static_cast<int>(same.upTo(4)), values.data(), count));
      ASSERT_TRUE(status.ok()) << status.message();
      for (const float value : values) ASSERT_EQ(value, 2.0F);
    }
  });
}

}  // namespace
}  // namespace farandole::testing
