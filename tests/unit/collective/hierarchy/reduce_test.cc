// Reductions through a hierarchy: the bits of the reference on every member, whatever the machines.
#include <gtest/gtest.h>

#include <numeric>

#include "unit/collective/hierarchy/machines_group.h"

namespace farandole::testing {
namespace reduce_test {

using collective::Communicator;
using collective::Piece;

constexpr DType kDTypes[] = {DType::kUint8,     DType::kInt8,    DType::kUint16,  DType::kInt16,
                             DType::kInt32,     DType::kInt64,   DType::kFloat16, DType::kBfloat16,
                             DType::kFloat32,   DType::kFloat64, DType::kBool,    DType::kComplex64,
                             DType::kComplex128};
constexpr ReduceOp kOps[] = {ReduceOp::kSum, ReduceOp::kAverage, ReduceOp::kMin,
                             ReduceOp::kMax, ReduceOp::kProduct, ReduceOp::kBand,
                             ReduceOp::kBor, ReduceOp::kBxor};
// In bytes, around the thresholds of smallChunks(): one carrier, one chunk, growing chunks, all.
constexpr std::int64_t kSizes[] = {0,     1,     16,    1000,  2032,   2048,   4096,  16368,
                                   16384, 16400, 32768, 50000, 131072, 131200, 300000};
constexpr std::size_t kMost = 400'000;  // pieces lie apart

struct Case {
  DType dtype;
  ReduceOp op;
  Scale scale;
  std::int64_t total;
  std::uint64_t seed;
  bool inPlace;
};

Case randomCase(Dice& dice) {
  Case result{};
  do {
    result.dtype = dice.pick(kDTypes);
    result.op = dice.pick(kOps);
  } while (!supports(result.op, result.dtype));
  if (dice.upTo(2) == 0) {
    result.scale.pre = dice.coin() ? 0.75 : 1.0;
    result.scale.post = 3.0;
  }
  result.total = dice.pick(kSizes) / static_cast<std::int64_t>(sizeOf(result.dtype));
  result.seed = dice.seed();
  result.inPlace = dice.coin();
  return result;
}

std::vector<std::int64_t> randomCounts(Dice& dice, std::int64_t total, std::int64_t parts) {
  std::vector<std::int64_t> counts;
  for (; parts > 1; --parts) {
    counts.push_back(dice.upTo(dice.coin() ? total : total / 3));
    total -= counts.back();
  }
  counts.push_back(total);
  return counts;
}

std::string describe(const Case& c, const MachineLayout& layout) {
  return layout.name + ": " + std::string(name(c.dtype)) + " " + std::string(name(c.op)) + " of " +
         std::to_string(c.total) + " elements" + (c.inPlace ? " in place" : "") +
         (c.scale.identity() ? "" : " scaled");
}

class HierarchyReduce : public ::testing::TestWithParam<MachineLayout> {
 protected:
  // body(member, its hierarchy, whole memory in and out)
  void run(const std::function<void(GroupMember&, Communicator&, std::byte*, std::byte*)>& body) {
    const MachineLayout& layout = GetParam();
    runGroup(layout.groupSize(), [&](GroupMember& member) {
      if (layout.memberOf(member.rank()) < 0) return;
      auto hierarchy = makeTestHierarchy(member, layout);
      ASSERT_EQ(hierarchy->member(), layout.memberOf(member.rank()));
      ASSERT_EQ(hierarchy->size(), layout.members());
      // Some of the ranks keep their tensors in shared memory.
      const bool shared = member.rank() % 3 == 1;
      body(member, *hierarchy, static_cast<std::byte*>(member.memory(kMost, shared)),
           static_cast<std::byte*>(member.memory(kMost, shared)));
    });
  }
};

std::vector<Bytes> inputsOf(const Case& c, int members) {
  std::vector<Bytes> inputs;
  for (int i = 0; i < members; ++i) inputs.push_back(sampleData(c.dtype, c.total, c.seed, i));
  return inputs;
}

TEST_P(HierarchyReduce, AllreduceMatchesReference) {
  const MachineLayout& layout = GetParam();
  run([&](GroupMember& member, Communicator& hierarchy, std::byte* in, std::byte* out) {
    Dice dice(101);
    for (int round = 0; round < 45 && !HasFatalFailure(); ++round) {
      const Case c = randomCase(dice);
      const std::vector<std::int64_t> counts =
          randomCounts(dice, c.total, dice.coin() ? 1 : 1 + dice.upTo(6));
      const std::vector<Bytes> inputs = inputsOf(c, layout.members());
      const Bytes& own = inputs[static_cast<std::size_t>(hierarchy.member())];
      const Bytes expected = reducedByMachines(layout, inputs, c.total, c.dtype, c.op, c.scale);
      std::vector<Piece> pieces;
      std::size_t at = 0;
      std::size_t from = 0;
      for (const std::int64_t count : counts) {
        const std::size_t bytes = static_cast<std::size_t>(count) * sizeOf(c.dtype);
        if (bytes > 0) std::memcpy(in + at, own.data() + from, bytes);
        pieces.push_back({in + at, c.inPlace ? in + at : out + at, count});
        at += bytes + 3 * sizeOf(c.dtype);
        from += bytes;
      }
      const Status status = member.wait(hierarchy.allreduce(pieces, c.dtype, c.op, c.scale));
      ASSERT_TRUE(status.ok()) << status.message();
      from = 0;
      for (const Piece& piece : pieces) {
        const std::size_t bytes = static_cast<std::size_t>(piece.count) * sizeOf(c.dtype);
        ASSERT_EQ(firstDifference(piece.out, expected.data() + from, bytes), -1)
            << describe(c, layout) << ", " << counts.size() << " pieces, round " << round;
        if (!c.inPlace) {
          ASSERT_EQ(firstDifference(piece.in, own.data() + from, bytes), -1) << "input changed";
        }
        from += bytes;
      }
    }
  });
}

TEST_P(HierarchyReduce, ReduceMatchesReference) {
  const MachineLayout& layout = GetParam();
  run([&](GroupMember& member, Communicator& hierarchy, std::byte* in, std::byte* out) {
    Dice dice(202);
    for (int round = 0; round < 20 && !HasFatalFailure(); ++round) {
      const Case c = randomCase(dice);
      const int root = round % layout.members();
      const bool mine = root == hierarchy.member();
      const std::vector<Bytes> inputs = inputsOf(c, layout.members());
      const Bytes& own = inputs[static_cast<std::size_t>(hierarchy.member())];
      if (!own.empty()) std::memcpy(in, own.data(), own.size());
      void* result = c.inPlace ? in : out;
      const Status status = member.wait(
          hierarchy.reduce(in, mine ? result : nullptr, c.total, c.dtype, c.op, c.scale, root));
      ASSERT_TRUE(status.ok()) << status.message();
      if (mine) {
        const Bytes expected = reducedByMachines(layout, inputs, c.total, c.dtype, c.op, c.scale);
        ASSERT_EQ(firstDifference(result, expected.data(), expected.size()), -1)
            << describe(c, layout) << ", root " << root;
      }
      if (!mine || !c.inPlace) {
        ASSERT_EQ(firstDifference(in, own.data(), own.size()), -1) << "input changed";
      }
    }
  });
}

TEST_P(HierarchyReduce, ReduceScatterMatchesReference) {
  const MachineLayout& layout = GetParam();
  run([&](GroupMember& member, Communicator& hierarchy, std::byte* in, std::byte* out) {
    Dice dice(303);
    for (int round = 0; round < 30 && !HasFatalFailure(); ++round) {
      const Case c = randomCase(dice);
      const std::vector<std::int64_t> counts = randomCounts(dice, c.total, layout.members());
      const auto me = static_cast<std::size_t>(hierarchy.member());
      const std::vector<Bytes> inputs = inputsOf(c, layout.members());
      const Bytes& own = inputs[me];
      const Bytes expected = reducedByMachines(layout, inputs, c.total, c.dtype, c.op, c.scale);
      if (!own.empty()) std::memcpy(in, own.data(), own.size());
      const auto start =
          static_cast<std::size_t>(std::accumulate(
              counts.begin(), counts.begin() + hierarchy.member(), std::int64_t{0})) *
          sizeOf(c.dtype);
      // In place: at the very place of the part, or at the front of the input.
      std::byte* const result = !c.inPlace ? out : round % 2 == 0 ? in : in + start;
      const Status status =
          member.wait(hierarchy.reducescatter(in, result, counts, c.dtype, c.op, c.scale));
      ASSERT_TRUE(status.ok()) << status.message();
      const std::size_t bytes = static_cast<std::size_t>(counts[me]) * sizeOf(c.dtype);
      ASSERT_EQ(firstDifference(result, expected.data() + start, bytes), -1)
          << describe(c, layout) << ", round " << round;
      if (!c.inPlace) {
        ASSERT_EQ(firstDifference(in, own.data(), own.size()), -1) << "input changed";
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Machines, HierarchyReduce, ::testing::ValuesIn(machineLayouts()),
                         [](const auto& layout) { return layout.param.name; });

// The sizes that users have, with the thresholds they get: several chunks of megabytes.
TEST(HierarchyReduceLarge, DefaultThresholds) {
  const MachineLayout layout{"", {0, 1, 0}, {}};
  runGroup(3, [&](GroupMember& member) {
    auto hierarchy = makeTestHierarchy(member, layout, collective::hierarchy::HierarchyTuning{});
    for (const std::int64_t count : {20'000, 1'300'001}) {
      auto* values = static_cast<float*>(member.memory(static_cast<std::size_t>(count) * 4, true));
      for (std::int64_t i = 0; i < count; ++i) {
        values[i] = static_cast<float>((i + member.rank()) % 1024);
      }
      const Piece pieces[] = {{values, values, 1000}, {values + 1000, values + 1000, count - 1000}};
      ASSERT_TRUE(
          member.wait(hierarchy->allreduce(pieces, DType::kFloat32, ReduceOp::kSum, {})).ok());
      for (std::int64_t i = 0; i < count; ++i) {
        ASSERT_EQ(values[i], static_cast<float>(i % 1024 + (i + 1) % 1024 + (i + 2) % 1024)) << i;
      }
    }
  });
}

TEST(HierarchyReduceLarge, HalfPrecisionRoundsOnce) {
  // 2048 + 1 + 1 in float16, the ones on different machines: rounding on each would lose both.
  const MachineLayout layout{"", {0, 0, 1, 1}, {}};
  runGroup(4, [&](GroupMember& member) {
    auto hierarchy = makeTestHierarchy(member, layout);
    std::vector<std::uint16_t> values(30'000, member.rank() == 0       ? 0x6800
                                              : member.rank() % 2 == 1 ? 0x3c00
                                                                       : 0);
    const Piece piece{values.data(), values.data(), 30'000};
    ASSERT_TRUE(
        member.wait(hierarchy->allreduce(std::span(&piece, 1), DType::kFloat16, ReduceOp::kSum, {}))
            .ok());
    for (const std::uint16_t value : values) ASSERT_EQ(value, 0x6801);
  });
}

TEST(HierarchyStatistics, TellsWhatWasReducedWithoutCopies) {
  const MachineLayout layout{"2x2", {0, 0, 1, 1}, {}};
  runGroup(4, [&](GroupMember& member) {
    auto communicator = makeTestHierarchy(member, layout, {});
    constexpr std::int64_t kCount = 1 << 18;
    auto* values = static_cast<float*>(member.memory(kCount * 4, true));
    std::fill_n(values, kCount, 1.0F);
    const Piece piece{values, values, kCount};
    ASSERT_TRUE(member
                    .wait(communicator->allreduce(std::span(&piece, 1), DType::kFloat32,
                                                  ReduceOp::kSum, {}))
                    .ok());
    EXPECT_EQ(values[0], 4.0F);
    // Its own half of the machine's sum, and the other half of the result.
    EXPECT_EQ(communicator->statistics().zeroCopyBytes, kCount * 4);
  });
}

}  // namespace reduce_test
}  // namespace farandole::testing
