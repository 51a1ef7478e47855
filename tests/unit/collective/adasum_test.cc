// Adasum against a plain sequential version of its definition.
#include "collective/adasum.h"

#include <gtest/gtest.h>

#include <cmath>

#include "unit/collective/data.h"
#include "unit/collective/local_group.h"

namespace farandole::testing {
namespace {

using collective::Piece;

// adasum of a list, in float64 throughout: pairs, then pairs of results.
std::vector<double> plainAdasum(std::vector<std::vector<double>> vectors) {
  while (vectors.size() > 1) {
    std::vector<std::vector<double>> next;
    for (std::size_t i = 0; i < vectors.size(); i += 2) {
      if (i + 1 == vectors.size()) {
        next.push_back(vectors[i]);
        continue;
      }
      const std::vector<double>& a = vectors[i];
      const std::vector<double>& b = vectors[i + 1];
      double ab = 0;
      double aa = 0;
      double bb = 0;
      for (std::size_t k = 0; k < a.size(); ++k) {
        ab += a[k] * b[k];
        aa += a[k] * a[k];
        bb += b[k] * b[k];
      }
      std::vector<double> sum(a.size());
      for (std::size_t k = 0; k < a.size(); ++k) {
        const double wa = aa == 0 ? 1 : 1 - ab / (2 * aa);
        const double wb = bb == 0 ? 1 : 1 - ab / (2 * bb);
        sum[k] = wa * a[k] + wb * b[k];
      }
      next.push_back(std::move(sum));
    }
    vectors = std::move(next);
  }
  return vectors.front();
}

class Adasum : public ::testing::TestWithParam<int> {};

TEST_P(Adasum, MatchesItsDefinitionAndAgreesBitForBit) {
  runGroup(GetParam(), [](GroupMember& member) {
    auto communicator = member.world();
    // Three tensors, one of them longer than a block of the dot products.
    const std::vector<std::int64_t> counts = {5, 40000, 0, 333};
    std::vector<std::vector<double>> values(counts.size());
    std::vector<Piece> pieces;
    for (std::size_t p = 0; p < counts.size(); ++p) {
      values[p].resize(static_cast<std::size_t>(counts[p]));
      const Bytes data = makeData(DType::kFloat64, counts[p], 31 + p, member.rank());
      if (!data.empty()) std::memcpy(values[p].data(), data.data(), data.size());
      pieces.push_back({values[p].data(), values[p].data(), counts[p]});
    }
    const Status status = member.wait(
        communicator->allreduce(pieces, DType::kFloat64, ReduceOp::kAdasum, Scale{1.0, 2.0, 1}));
    ASSERT_TRUE(status.ok()) << status.message();
    for (std::size_t p = 0; p < counts.size(); ++p) {
      std::vector<std::vector<double>> inputs;
      for (int rank = 0; rank < member.size(); ++rank) {
        const Bytes data = makeData(DType::kFloat64, counts[p], 31 + p, rank);
        inputs.emplace_back(static_cast<std::size_t>(counts[p]));
        if (!data.empty()) std::memcpy(inputs.back().data(), data.data(), data.size());
      }
      const std::vector<double> expected = plainAdasum(inputs);
      for (std::size_t k = 0; k < expected.size(); ++k) {
        ASSERT_NEAR(values[p][k], 2 * expected[k], 1e-9) << "piece " << p << " element " << k;
      }
    }
    // Bit-identical on all ranks: the minimum and the maximum of the bits are equal.
    std::vector<std::int64_t> low(40000);
    std::memcpy(low.data(), values[1].data(), low.size() * 8);
    std::vector<std::int64_t> high = low;
    const Piece least{low.data(), low.data(), 40000};
    const Piece most{high.data(), high.data(), 40000};
    ASSERT_TRUE(
        member
            .wait(communicator->allreduce(std::span(&least, 1), DType::kInt64, ReduceOp::kMin, {}))
            .ok());
    ASSERT_TRUE(
        member.wait(communicator->allreduce(std::span(&most, 1), DType::kInt64, ReduceOp::kMax, {}))
            .ok());
    ASSERT_EQ(low, high);
  });
}
INSTANTIATE_TEST_SUITE_P(Ranks, Adasum, ::testing::Values(1, 2, 3, 5, 8));

TEST(AdasumRules, ParallelGradientsAreAveragedOrthogonalOnesSummed) {
  runGroup(2, [](GroupMember& member) {
    auto communicator = member.world();
    std::vector<float> parallel(100, 3.0F);
    std::vector<float> orthogonal(100, 0.0F);
    orthogonal[static_cast<std::size_t>(member.rank())] = 5.0F;
    std::vector<float> zero(10, member.rank() == 0 ? 0.0F : 4.0F);
    const Piece pieces[] = {{parallel.data(), parallel.data(), 100},
                            {orthogonal.data(), orthogonal.data(), 100},
                            {zero.data(), zero.data(), 10}};
    ASSERT_TRUE(
        member.wait(communicator->allreduce(pieces, DType::kFloat32, ReduceOp::kAdasum, {})).ok());
    EXPECT_FLOAT_EQ(parallel[7], 3.0F);
    EXPECT_FLOAT_EQ(orthogonal[0], 5.0F);
    EXPECT_FLOAT_EQ(orthogonal[1], 5.0F);
    EXPECT_FLOAT_EQ(zero[3], 4.0F);
  });
}

TEST(AdasumRules, OutOfSharedMemoryFailsOnAllRanksAndGoesOn) {
  GroupOptions options;
  options.arenaBytes = std::size_t{64} << 20;
  runGroup(
      3,
      [](GroupMember& member) {
        auto communicator = member.world();
        // Rank 1 has used up its arena.
        std::vector<void*> hoard;
        for (int i = 0; member.rank() == 1 && i < 100; ++i) {
          Result<void*> block = member.neighbourhood().arena().allocate(std::size_t{2} << 20);
          if (!block.ok()) break;
          hoard.push_back(*block);
        }
        std::vector<float> values(1 << 20, 1.0F);
        const Piece piece{values.data(), values.data(), 1 << 20};
        const Status status = member.wait(
            communicator->allreduce(std::span(&piece, 1), DType::kFloat32, ReduceOp::kAdasum, {}));
        EXPECT_EQ(status.code(), Code::kOutOfMemory) << status.message();
        const Status next = member.wait(
            communicator->allreduce(std::span(&piece, 1), DType::kFloat32, ReduceOp::kSum, {}));
        ASSERT_TRUE(next.ok()) << next.message();
        EXPECT_EQ(values[100], 3.0F);
      },
      options);
}

}  // namespace
}  // namespace farandole::testing
