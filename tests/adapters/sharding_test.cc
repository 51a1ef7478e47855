#include <farandole/sharding.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

namespace farandole {
namespace {

using Indices = std::vector<std::size_t>;

std::vector<Indices> shards(ShardingOptions options, int ranks, std::uint64_t epoch = 0) {
  std::vector<Indices> result;
  options.ranks = ranks;
  for (options.rank = 0; options.rank < ranks; ++options.rank) {
    result.push_back(Sharding(options).indices(epoch));
    EXPECT_EQ(result.back().size(), Sharding(options).size());
  }
  return result;
}

std::map<std::size_t, int> counts(const std::vector<Indices>& parts) {
  std::map<std::size_t, int> result;
  for (const Indices& part : parts) {
    for (const std::size_t index : part) ++result[index];
  }
  return result;
}

TEST(Sharding, UnevenShardsAreDisjointAndCoverEverything) {
  for (const std::size_t samples : {0UL, 1UL, 5UL, 64UL, 101UL}) {
    for (const int ranks : {1, 2, 3, 7, 8}) {
      const auto parts = shards({.samples = samples, .remainder = ShardRemainder::kUneven}, ranks);
      const auto seen = counts(parts);
      EXPECT_EQ(seen.size(), samples);
      for (const auto& [index, times] : seen) {
        EXPECT_LT(index, samples);
        EXPECT_EQ(times, 1);
      }
      EXPECT_LE(parts.front().size() - parts.back().size(), 1U);
    }
  }
}

TEST(Sharding, RepeatMakesEqualShardsThatCoverEverything) {
  for (const std::size_t samples : {1UL, 5UL, 64UL, 101UL}) {
    for (const int ranks : {1, 2, 3, 7, 8}) {
      const auto parts = shards({.samples = samples}, ranks);
      for (const Indices& part : parts) EXPECT_EQ(part.size(), parts[0].size());
      const auto seen = counts(parts);
      EXPECT_EQ(seen.size(), samples);
      const std::size_t total = parts[0].size() * parts.size();
      EXPECT_LT(total - samples, static_cast<std::size_t>(ranks));
    }
  }
}

TEST(Sharding, DropMakesEqualDisjointShards) {
  const auto parts = shards({.samples = 23, .remainder = ShardRemainder::kDrop}, 4);
  for (const Indices& part : parts) EXPECT_EQ(part.size(), 5U);
  EXPECT_EQ(counts(parts).size(), 20U);
}

TEST(Sharding, OrderDependsOnSeedAndEpochAlone) {
  const Sharding one({.samples = 1000, .seed = 3});
  EXPECT_EQ(one.indices(4), Sharding({.samples = 1000, .seed = 3}).indices(4));
  EXPECT_NE(one.indices(4), one.indices(5));
  EXPECT_NE(one.indices(4), Sharding({.samples = 1000, .seed = 4}).indices(4));
  // Seed and epoch are not interchangeable.
  EXPECT_NE(one.indices(4), Sharding({.samples = 1000, .seed = 4}).indices(3));
}

TEST(Sharding, OrderIsTheSameOnEveryMachine) {
  // A change of these numbers changes everybody's training.
  const Indices order = Sharding({.samples = 8, .seed = 1}).indices(0);
  EXPECT_EQ(order, (Indices{7, 0, 6, 5, 1, 4, 2, 3}));
}

TEST(Sharding, WithoutShuffleTheOrderIsThatOfTheSet) {
  const Indices order =
      Sharding({.samples = 7, .rank = 1, .ranks = 2, .shuffle = false}).indices(9);
  EXPECT_EQ(order, (Indices{1, 3, 5, 0}));
}

TEST(Sharding, BatchesOfAllRanksAreTheBatchOfOne) {
  const std::size_t batch = 8;
  const auto parts = shards({.samples = 96, .seed = 5}, 3, 2);
  const Indices whole = shards({.samples = 96, .seed = 5}, 1, 2)[0];
  for (std::size_t step = 0; step < 4; ++step) {
    Indices together;
    for (const Indices& part : parts) {
      together.insert(together.end(), part.begin() + static_cast<std::ptrdiff_t>(step * batch),
                      part.begin() + static_cast<std::ptrdiff_t>((step + 1) * batch));
    }
    Indices expected(whole.begin() + static_cast<std::ptrdiff_t>(step * batch * 3),
                     whole.begin() + static_cast<std::ptrdiff_t>((step + 1) * batch * 3));
    std::sort(together.begin(), together.end());
    std::sort(expected.begin(), expected.end());
    EXPECT_EQ(together, expected);
  }
}

TEST(Sharding, ShuffleIsUniformEnough) {
  // Where sample 0 lands over many epochs: 10 places, 4000 epochs, mean 400, deviation 19.
  std::vector<int> places(10, 0);
  const Sharding sharding({.samples = 10, .seed = 11});
  for (std::uint64_t epoch = 0; epoch < 4000; ++epoch) {
    const Indices order = sharding.indices(epoch);
    ++places[static_cast<std::size_t>(std::find(order.begin(), order.end(), 0U) - order.begin())];
  }
  for (const int count : places) EXPECT_NEAR(count, 400, 100);
}

TEST(Sharding, StepsAreTheSameOnAllRanks) {
  for (int rank = 0; rank < 3; ++rank) {
    const ShardingOptions options{
        .samples = 10, .rank = rank, .ranks = 3, .remainder = ShardRemainder::kUneven};
    EXPECT_EQ(Sharding(options).steps(2), 2U);
    EXPECT_EQ(Sharding(options).steps(3), 2U);
    EXPECT_EQ(Sharding(options).steps(100), 1U);
  }
  EXPECT_EQ(Sharding({.samples = 11, .ranks = 4, .remainder = ShardRemainder::kDrop}).steps(2), 1U);
  EXPECT_THROW((void)Sharding({.samples = 1}).steps(0), std::invalid_argument);
}

TEST(Sharding, RefusesRanksThatDoNotExist) {
  EXPECT_THROW(Sharding({.samples = 1, .rank = 2, .ranks = 2}), std::invalid_argument);
  EXPECT_THROW(Sharding({.samples = 1, .rank = -1, .ranks = -1}), std::invalid_argument);
}

}  // namespace
}  // namespace farandole
