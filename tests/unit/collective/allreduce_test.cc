// Allreduce: every way it can go must give the bits of the plain reference, on every rank.
#include <gtest/gtest.h>

#include <cfenv>
#include <cmath>
#include <numeric>

#include "unit/collective/data.h"
#include "unit/collective/local_group.h"

namespace farandole::testing {
namespace allreduce_test {

using collective::Piece;

constexpr DType kDTypes[] = {DType::kUint8,     DType::kInt8,    DType::kUint16,  DType::kInt16,
                             DType::kInt32,     DType::kInt64,   DType::kFloat16, DType::kBfloat16,
                             DType::kFloat32,   DType::kFloat64, DType::kBool,    DType::kComplex64,
                             DType::kComplex128};
constexpr ReduceOp kOps[] = {ReduceOp::kSum, ReduceOp::kAverage, ReduceOp::kMin,
                             ReduceOp::kMax, ReduceOp::kProduct, ReduceOp::kBand,
                             ReduceOp::kBor, ReduceOp::kBxor};
// Around every threshold of the engine, in bytes.
constexpr std::int64_t kSizes[] = {0,     1,      8,      55,     56,     57,      64,
                                   2047,  2048,   2056,   4096,   16383,  16384,   32769,
                                   65536, 100000, 262144, 300001, 524288, 1 << 20, (1 << 20) + 24};

struct Case {
  DType dtype;
  ReduceOp op;
  Scale scale;
  std::vector<std::int64_t> counts;  // of the pieces
  bool shared;
  bool inPlace;
  std::uint64_t seed;
};

Case randomCase(Dice& dice) {
  Case result{};
  do {
    result.dtype = dice.pick(kDTypes);
    result.op = dice.pick(kOps);
  } while (!supports(result.op, result.dtype));
  if (dice.upTo(3) == 0) {
    result.scale.pre = 0.5;
    result.scale.post = 3.0;
  }
  const auto total = dice.pick(kSizes) / static_cast<std::int64_t>(sizeOf(result.dtype));
  std::int64_t left = total;
  for (std::int64_t pieces = dice.coin() ? 1 : 1 + dice.upTo(6); pieces > 1; --pieces) {
    result.counts.push_back(dice.upTo(left));
    left -= result.counts.back();
  }
  result.counts.push_back(left);
  result.shared = dice.coin();
  result.inPlace = dice.coin();
  result.seed = dice.seed();
  return result;
}

std::string describe(const Case& c, int ranks) {
  return std::string(name(c.dtype)) + " " + std::string(name(c.op)) + " of " +
         std::to_string(std::accumulate(c.counts.begin(), c.counts.end(), std::int64_t{0})) +
         " elements in " + std::to_string(c.counts.size()) + " pieces, " +
         (c.shared ? "shared" : "ordinary") + (c.inPlace ? ", in place, " : ", ") +
         std::to_string(ranks) + " ranks";
}

// Runs one case on this rank; `mine` says whether this rank's memory is shared.
void runCase(GroupMember& member, collective::Communicator& communicator, const Case& c, bool mine,
             std::byte* in, std::byte* out) {
  const std::size_t elementBytes = sizeOf(c.dtype);
  const int ranks = communicator.size();
  const auto total = std::accumulate(c.counts.begin(), c.counts.end(), std::int64_t{0});
  std::vector<Bytes> inputs;
  for (int rank = 0; rank < ranks; ++rank) {
    inputs.push_back(makeData(c.dtype, total, c.seed, rank));
  }
  const Bytes& own = inputs[static_cast<std::size_t>(communicator.member())];
  const Bytes expected = reduced(inputs, total, c.dtype, c.op, c.scale);
  // Pieces lie apart, one element between them.
  std::vector<Piece> pieces;
  std::size_t at = 0;
  std::size_t from = 0;
  for (const std::int64_t count : c.counts) {
    const std::size_t bytes = static_cast<std::size_t>(count) * elementBytes;
    if (bytes > 0) std::memcpy(in + at, own.data() + from, bytes);
    pieces.push_back({in + at, c.inPlace ? in + at : out + at, count});
    at += bytes + elementBytes;
    from += bytes;
  }
  const Status status = member.wait(communicator.allreduce(pieces, c.dtype, c.op, c.scale));
  ASSERT_TRUE(status.ok()) << status.message();
  from = 0;
  for (const Piece& piece : pieces) {
    const std::size_t bytes = static_cast<std::size_t>(piece.count) * elementBytes;
    ASSERT_EQ(firstDifference(piece.out, expected.data() + from, bytes), -1)
        << describe(c, ranks) << (mine ? " (this rank shared)" : "");
    if (!c.inPlace) {
      ASSERT_EQ(firstDifference(piece.in, own.data() + from, bytes), -1) << "input changed";
    }
    from += bytes;
  }
}

class Allreduce : public ::testing::TestWithParam<int> {};

TEST_P(Allreduce, RandomCasesMatchReference) {
  runGroup(GetParam(), [](GroupMember& member) {
    auto communicator = member.world();
    Dice dice(4711);
    const std::size_t most = (1 << 20) + 4096;
    auto* sharedIn = static_cast<std::byte*>(member.memory(most, true));
    auto* sharedOut = static_cast<std::byte*>(member.memory(most, true));
    auto* ordinaryIn = static_cast<std::byte*>(member.memory(most, false));
    auto* ordinaryOut = static_cast<std::byte*>(member.memory(most, false));
    const int cases = casesOf(member.size() <= 2 ? 300 : member.size() <= 4 ? 100 : 50);
    for (int i = 0; i < cases && !::testing::Test::HasFatalFailure(); ++i) {
      const Case c = randomCase(dice);
      // Now and then only some ranks have shared memory.
      const bool mixed = dice.upTo(5) == 0;
      const bool mine = c.shared && (!mixed || member.rank() % 2 == 0);
      runCase(member, *communicator, c, mine, mine ? sharedIn : ordinaryIn,
              mine ? sharedOut : ordinaryOut);
    }
  });
}
INSTANTIATE_TEST_SUITE_P(Ranks, Allreduce, ::testing::Values(1, 2, 3, 4, 5, 8));

// An independent reference: plain loops.
TEST(AllreduceValues, PlainSums) {
  runGroup(3, [](GroupMember& member) {
    auto communicator = member.world();
    for (const std::int64_t count : {1, 100, 5000, 300000}) {
      std::vector<float> values(static_cast<std::size_t>(count));
      std::vector<std::int32_t> integers(static_cast<std::size_t>(count));
      for (std::int64_t i = 0; i < count; ++i) {
        values[static_cast<std::size_t>(i)] = static_cast<float>(i % 1000 + member.rank() * 7);
        integers[static_cast<std::size_t>(i)] =
            static_cast<std::int32_t>(i % 1000 - 500 * member.rank());
      }
      const Piece reals{values.data(), values.data(), count};
      const Piece whole{integers.data(), integers.data(), count};
      ASSERT_TRUE(member
                      .wait(communicator->allreduce(std::span(&reals, 1), DType::kFloat32,
                                                    ReduceOp::kAverage, {}))
                      .ok());
      ASSERT_TRUE(member
                      .wait(communicator->allreduce(std::span(&whole, 1), DType::kInt32,
                                                    ReduceOp::kMin, {}))
                      .ok());
      for (std::int64_t i = 0; i < count; ++i) {
        ASSERT_EQ(values[static_cast<std::size_t>(i)], static_cast<float>(i % 1000 + 7)) << i;
        ASSERT_EQ(integers[static_cast<std::size_t>(i)], i % 1000 - 1000) << i;
      }
    }
  });
}

TEST(AllreduceValues, HalfPrecisionRoundsOnce) {
  // 2048 + 1 + 1 in float16: rounding after each step would lose both ones.
  runGroup(3, [](GroupMember& member) {
    auto communicator = member.world();
    std::vector<std::uint16_t> values(4000, member.rank() == 0 ? 0x6800 : 0x3c00);
    const Piece piece{values.data(), values.data(), 4000};
    ASSERT_TRUE(member
                    .wait(communicator->allreduce(std::span(&piece, 1), DType::kFloat16,
                                                  ReduceOp::kSum, {}))
                    .ok());
    for (const std::uint16_t value : values) ASSERT_EQ(value, 0x6801);
  });
}

TEST(AllreduceValues, NansAndInfinitiesPass) {
  runGroup(2, [](GroupMember& member) {
    auto communicator = member.world();
    for (const std::size_t count : {std::size_t{3}, std::size_t{60000}}) {
      std::vector<float> values(count, 1.0F);
      if (member.rank() == 1) values[0] = std::nanf("");
      if (member.rank() == 0) values[1] = INFINITY;
      const Piece piece{values.data(), values.data(), static_cast<std::int64_t>(count)};
      ASSERT_TRUE(member
                      .wait(communicator->allreduce(std::span(&piece, 1), DType::kFloat32,
                                                    ReduceOp::kSum, {}))
                      .ok());
      EXPECT_TRUE(std::isnan(values[0]));
      EXPECT_TRUE(std::isinf(values[1]));
      EXPECT_EQ(values[2], 2.0F);
    }
  });
}

TEST(AllreduceValues, IgnoresTheDrivingThreadsRounding) {
  runGroup(2, [](GroupMember& member) {
    auto communicator = member.world();
    for (const std::size_t count : {std::size_t{8}, std::size_t{1000}, std::size_t{60000}}) {
      const Bytes a = makeData(DType::kFloat32, static_cast<std::int64_t>(count), 1, 0);
      const Bytes b = makeData(DType::kFloat32, static_cast<std::int64_t>(count), 1, 1);
      const Bytes expected =
          reduced({a, b}, static_cast<std::int64_t>(count), DType::kFloat32, ReduceOp::kSum, {});
      Bytes mine = member.rank() == 0 ? a : b;
      const Piece piece{mine.data(), mine.data(), static_cast<std::int64_t>(count)};
      std::fesetround(member.rank() == 0 ? FE_UPWARD : FE_DOWNWARD);
      const Status status = member.wait(
          communicator->allreduce(std::span(&piece, 1), DType::kFloat32, ReduceOp::kSum, {}));
      std::fesetround(FE_TONEAREST);
      ASSERT_TRUE(status.ok());
      ASSERT_EQ(firstDifference(mine.data(), expected.data(), mine.size()), -1);
    }
  });
}

TEST(AllreduceValues, SharedMemoryIsReducedWithoutCopies) {
  runGroup(2, [](GroupMember& member) {
    auto communicator = member.world();
    constexpr std::int64_t kCount = 1 << 18;
    auto* values = static_cast<float*>(member.memory(kCount * 4, true));
    for (int round = 0; round < 40; ++round) {  // the tuner tries its ways
      std::fill_n(values, kCount, 1.0F);
      const Piece piece{values, values, kCount};
      ASSERT_TRUE(member
                      .wait(communicator->allreduce(std::span(&piece, 1), DType::kFloat32,
                                                    ReduceOp::kSum, {}))
                      .ok());
      ASSERT_EQ(values[0], 2.0F);
      ASSERT_EQ(values[kCount - 1], 2.0F);
    }
    EXPECT_EQ(communicator->statistics().zeroCopyBytes, 40u * kCount * 4);
  });
}

// The same operation many times: the tuner changes the way under way, the bits must not change.
TEST(AllreduceValues, EveryWayGivesTheSameBits) {
  runGroup(4, [](GroupMember& member) {
    auto communicator = member.world();
    for (const std::int64_t count : {2000, 10000, 200000}) {
      std::vector<Bytes> inputs;
      for (int rank = 0; rank < 4; ++rank) {
        inputs.push_back(makeData(DType::kBfloat16, count, 5, rank));
      }
      const Bytes expected = reduced(inputs, count, DType::kBfloat16, ReduceOp::kAverage, {});
      for (int round = 0; round < 50; ++round) {
        Bytes mine = inputs[static_cast<std::size_t>(member.rank())];
        const Piece piece{mine.data(), mine.data(), count};
        ASSERT_TRUE(member
                        .wait(communicator->allreduce(std::span(&piece, 1), DType::kBfloat16,
                                                      ReduceOp::kAverage, {}))
                        .ok());
        ASSERT_EQ(firstDifference(mine.data(), expected.data(), mine.size()), -1) << round;
      }
    }
  });
}

}  // namespace allreduce_test
}  // namespace farandole::testing
