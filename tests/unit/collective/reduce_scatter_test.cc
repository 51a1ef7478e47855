// Reducescatter with uneven parts, and reduce to a root.
#include <gtest/gtest.h>

#include <numeric>

#include "unit/collective/data.h"
#include "unit/collective/local_group.h"

namespace farandole::testing {
namespace reduce_scatter_test {

constexpr std::int64_t kCounts[] = {0, 1, 15, 64, 1000, 9000, 40000, 90001};
constexpr DType kDTypes[] = {DType::kInt8, DType::kBfloat16, DType::kFloat32, DType::kFloat64};
constexpr ReduceOp kOps[] = {ReduceOp::kSum, ReduceOp::kAverage, ReduceOp::kMax};

class ReduceScatter : public ::testing::TestWithParam<int> {};

TEST_P(ReduceScatter, RandomCasesMatchReference) {
  runGroup(GetParam(), [](GroupMember& member) {
    auto communicator = member.world();
    Dice dice(21);
    for (int i = 0; i < casesOf(40); ++i) {
      const DType dtype = dice.pick(kDTypes);
      const ReduceOp op = dice.pick(kOps);
      const bool shared = dice.coin();
      const bool toRoot = dice.coin();
      const bool inPlace = dice.coin();
      const int root = static_cast<int>(dice.upTo(member.size() - 1));
      const std::uint64_t seed = dice.seed();
      const std::int64_t equal = dice.pick(kCounts);
      const bool even = dice.coin();
      std::vector<std::int64_t> counts;
      for (int rank = 0; rank < member.size(); ++rank) {
        const std::int64_t uneven = dice.pick(kCounts);
        counts.push_back(even ? equal : uneven);
      }
      const auto total = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
      std::vector<Bytes> inputs;
      for (int rank = 0; rank < member.size(); ++rank) {
        inputs.push_back(makeData(dtype, total, seed, rank));
      }
      const Bytes all = reduced(inputs, total, dtype, op, {});
      const Bytes& own = inputs[static_cast<std::size_t>(member.rank())];
      const auto before = static_cast<std::size_t>(std::accumulate(
                              counts.begin(), counts.begin() + member.rank(), std::int64_t{0})) *
                          sizeOf(dtype);
      const auto mine =
          static_cast<std::size_t>(counts[static_cast<std::size_t>(member.rank())]) * sizeOf(dtype);
      auto* in = static_cast<std::byte*>(member.memory(all.size() + 1, shared));
      auto* out = static_cast<std::byte*>(member.memory(all.size() + 1, shared));
      if (!own.empty()) std::memcpy(in, own.data(), own.size());
      Status status;
      if (toRoot) {
        std::byte* to = inPlace ? in : out;
        status = member.wait(communicator->reduce(in, to, total, dtype, op, {}, root));
        ASSERT_TRUE(status.ok()) << status.message();
        if (member.rank() == root) {
          ASSERT_EQ(firstDifference(to, all.data(), all.size()), -1) << i;
        }
      } else {
        std::byte* to = inPlace ? in + before : out;
        status = member.wait(communicator->reducescatter(in, to, counts, dtype, op, {}));
        ASSERT_TRUE(status.ok()) << status.message();
        ASSERT_EQ(firstDifference(to, all.data() + before, mine), -1) << i;
      }
      if (!inPlace || (toRoot && member.rank() != root)) {
        ASSERT_EQ(firstDifference(in, own.data(), own.size()), -1) << "input changed";
      }
      if (shared) {
        member.neighbourhood().arena().free(in);
        member.neighbourhood().arena().free(out);
      } else {
        std::free(in);
        std::free(out);
      }
    }
  });
}
INSTANTIATE_TEST_SUITE_P(Ranks, ReduceScatter, ::testing::Values(1, 2, 3, 4, 5, 8));

}  // namespace reduce_scatter_test
}  // namespace farandole::testing
