// Data that only moves through a hierarchy: broadcast, allgather, barrier, and what goes flat.
#include <gtest/gtest.h>

#include <numeric>

#include "unit/collective/hierarchy/machines_group.h"

namespace farandole::testing {
namespace move_test {

using collective::Communicator;
using collective::OperationPtr;
using collective::Piece;

constexpr std::int64_t kSizes[] = {0,     1,     16,    1000,  2032,   2048,   4096,  16368,
                                   16384, 16400, 32768, 50000, 131072, 131200, 300000};
constexpr DType kDTypes[] = {DType::kUint8, DType::kFloat16, DType::kFloat32, DType::kComplex128};
constexpr std::size_t kMost = 400'000;

class HierarchyMove : public ::testing::TestWithParam<MachineLayout> {
 protected:
  void run(const std::function<void(GroupMember&, Communicator&, std::byte*, std::byte*)>& body) {
    const MachineLayout& layout = GetParam();
    runGroup(layout.groupSize(), [&](GroupMember& member) {
      if (layout.memberOf(member.rank()) < 0) return;
      auto hierarchy = makeTestHierarchy(member, layout);
      const bool shared = member.rank() % 3 == 1;
      body(member, *hierarchy, static_cast<std::byte*>(member.memory(kMost, shared)),
           static_cast<std::byte*>(member.memory(kMost, shared)));
    });
  }
};

TEST_P(HierarchyMove, Broadcast) {
  const MachineLayout& layout = GetParam();
  run([&](GroupMember& member, Communicator& hierarchy, std::byte* in, std::byte* out) {
    Dice dice(404);
    for (int round = 0; round < 35 && !HasFatalFailure(); ++round) {
      const DType dtype = dice.pick(kDTypes);
      const std::int64_t total = dice.pick(kSizes) / static_cast<std::int64_t>(sizeOf(dtype));
      const int root = round % layout.members();
      const bool mine = root == hierarchy.member();
      const bool inPlace = dice.coin();
      const Bytes data = sampleData(dtype, total, dice.seed(), 0);
      std::vector<Piece> pieces;
      std::size_t at = 0;
      std::size_t from = 0;
      std::int64_t left = total;
      std::memset(out, 0xee, kMost);
      std::memset(in, 0xee, kMost);
      for (std::int64_t n = dice.coin() ? 1 : 1 + dice.upTo(5); n > 0; --n) {
        const std::int64_t count = n == 1 ? left : dice.upTo(left);
        left -= count;
        const std::size_t bytes = static_cast<std::size_t>(count) * sizeOf(dtype);
        if (mine && bytes > 0) std::memcpy(in + at, data.data() + from, bytes);
        std::byte* const to = inPlace ? in + at : out + at;
        pieces.push_back({mine ? in + at : nullptr, to, count});
        at += bytes + sizeOf(dtype);
        from += bytes;
      }
      const Status status = member.wait(hierarchy.broadcast(pieces, dtype, root));
      ASSERT_TRUE(status.ok()) << status.message();
      from = 0;
      for (const Piece& piece : pieces) {
        const std::size_t bytes = static_cast<std::size_t>(piece.count) * sizeOf(dtype);
        ASSERT_EQ(firstDifference(piece.out, data.data() + from, bytes), -1)
            << layout.name << ": " << total << " elements in " << pieces.size()
            << " pieces from root " << root << ", round " << round;
        ASSERT_EQ(static_cast<std::byte*>(piece.out)[bytes], std::byte{0xee}) << "beyond the end";
        from += bytes;
      }
    }
  });
}

TEST_P(HierarchyMove, Allgather) {
  const MachineLayout& layout = GetParam();
  run([&](GroupMember& member, Communicator& hierarchy, std::byte* in, std::byte* out) {
    Dice dice(505);
    for (int round = 0; round < 35 && !HasFatalFailure(); ++round) {
      const DType dtype = dice.pick(kDTypes);
      std::int64_t left = dice.pick(kSizes) / static_cast<std::int64_t>(sizeOf(dtype));
      const auto me = static_cast<std::size_t>(hierarchy.member());
      const std::uint64_t seed = dice.seed();
      std::vector<std::int64_t> counts;
      Bytes expected;
      std::size_t start = 0;
      for (int i = 0; i < layout.members(); ++i) {
        counts.push_back(i + 1 == layout.members() ? left
                                                   : dice.upTo(dice.coin() ? left : left / 3));
        left -= counts.back();
        if (i == hierarchy.member()) start = expected.size();
        const Bytes part = sampleData(dtype, counts.back(), seed, i);
        expected.insert(expected.end(), part.begin(), part.end());
      }
      const std::size_t bytes = static_cast<std::size_t>(counts[me]) * sizeOf(dtype);
      std::memset(out, 0xee, kMost);
      // From elsewhere, in its place in the output, or (what only the hierarchy allows) from the
      // front of the output.
      const std::int64_t where = dice.upTo(layout.degenerate() ? 1 : 2);
      std::byte* const from = where == 0 ? in : where == 1 ? out + start : out;
      if (bytes > 0) std::memcpy(from, expected.data() + start, bytes);
      const Status status = member.wait(hierarchy.allgather(from, out, counts, dtype));
      ASSERT_TRUE(status.ok()) << status.message();
      ASSERT_EQ(firstDifference(out, expected.data(), expected.size()), -1)
          << layout.name << ": " << expected.size() << " bytes, input " << where << ", round "
          << round;
      ASSERT_EQ(out[expected.size()], std::byte{0xee}) << "beyond the end";
    }
  });
}

// What goes through the flat communicator still comes in order with the rest.
TEST_P(HierarchyMove, FlatOperations) {
  const MachineLayout& layout = GetParam();
  run([&](GroupMember& member, Communicator& hierarchy, std::byte*, std::byte*) {
    const int n = layout.members();
    const int me = hierarchy.member();
    const std::vector<std::int64_t> ones(static_cast<std::size_t>(n), 1);
    for (int round = 0; round < 10; ++round) {
      std::vector<std::int32_t> sent(static_cast<std::size_t>(n));
      for (int i = 0; i < n; ++i) sent[static_cast<std::size_t>(i)] = 100 * me + i + round;
      std::vector<std::int32_t> got(static_cast<std::size_t>(n), -1);
      ASSERT_TRUE(
          member.wait(hierarchy.alltoall(sent.data(), ones, got.data(), ones, DType::kInt32)).ok());
      for (int i = 0; i < n; ++i) ASSERT_EQ(got[static_cast<std::size_t>(i)], 100 * i + me + round);
      const int root = round % n;
      ASSERT_TRUE(
          member.wait(hierarchy.gather(sent.data(), got.data(), ones, DType::kInt32, root)).ok());
      if (me == root) {
        for (int i = 0; i < n; ++i) ASSERT_EQ(got[static_cast<std::size_t>(i)], 100 * i + round);
      }
      ASSERT_TRUE(member.wait(hierarchy.barrier()).ok());
      ASSERT_TRUE(
          member.wait(hierarchy.scatter(sent.data(), got.data(), ones, DType::kInt32, root)).ok());
      ASSERT_EQ(got[0], 100 * root + me + round);
      double vector[2] = {1.0, 1.0};
      const Piece piece{vector, vector, 2};
      ASSERT_TRUE(member
                      .wait(hierarchy.allreduce(std::span(&piece, 1), DType::kFloat64,
                                                ReduceOp::kAdasum, {}))
                      .ok());
      EXPECT_DOUBLE_EQ(vector[0], 1.0);  // equal gradients stay what they are
      // A token round the ring; then one message that does not fit, which harms nobody.
      const int next = (me + 1) % n;
      std::int64_t token = 0;
      std::int64_t mine = me + round;
      const OperationPtr pass = hierarchy.send(&mine, 8, next, 5);
      ASSERT_TRUE(member.wait(hierarchy.receive(&token, 8, (me + n - 1) % n, 5, nullptr)).ok());
      ASSERT_TRUE(member.wait(pass).ok());
      ASSERT_EQ(token, (me + n - 1) % n + round);
      const OperationPtr large = hierarchy.send(&mine, 8, next, 6);
      ASSERT_FALSE(member.wait(hierarchy.receive(&token, 4, (me + n - 1) % n, 6, nullptr)).ok());
      ASSERT_FALSE(member.wait(large).ok());
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Machines, HierarchyMove, ::testing::ValuesIn(machineLayouts()),
                         [](const auto& layout) { return layout.param.name; });

// Nobody leaves a barrier before everybody has come to it.
TEST(HierarchyBarrier, WaitsForEverybody) {
  const MachineLayout layout{"", {0, 1, 0, 1, 1}, {}};
  runGroup(5, [&](GroupMember& member) {
    auto hierarchy = makeTestHierarchy(member, layout);
    for (int late = 0; late < 5; ++late) {
      OperationPtr barrier;
      if (member.rank() == late) {
        // The others must be inside by now, or come later: both are a wait for this rank.
        std::int64_t word = 0;
        for (int other = 0; other < 5; ++other) {
          if (other == late) continue;
          ASSERT_TRUE(member.wait(hierarchy->receive(&word, 8, other, late, nullptr)).ok());
        }
        barrier = hierarchy->barrier();
      } else {
        barrier = hierarchy->barrier();
        for (int i = 0; i < 50; ++i) ASSERT_EQ(barrier->progress(), collective::Progress::kPending);
        const std::int64_t word = 1;
        ASSERT_TRUE(member.wait(hierarchy->send(&word, 8, late, late)).ok());
      }
      ASSERT_TRUE(member.wait(barrier).ok());
    }
  });
}

}  // namespace move_test
}  // namespace farandole::testing
