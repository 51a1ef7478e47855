// Sharding: which samples a rank trains on in which epoch. Plain indices, no framework.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace farandole {

// What happens when the number of samples is not a multiple of the number of ranks.
enum class ShardRemainder {
  kRepeat,  // all shards ceil(n / ranks) long: the first samples of the epoch's order come twice
  kDrop,    // all shards floor(n / ranks) long: the last samples of the epoch's order are left out
  kUneven,  // every sample exactly once; shards differ by at most one
};

struct ShardingOptions {
  std::size_t samples = 0;
  int rank = 0;
  int ranks = 1;
  std::uint64_t seed = 0;
  bool shuffle = true;
  ShardRemainder remainder = ShardRemainder::kRepeat;
};

// A value; distinct objects may be used from distinct threads.
//
// The order of an epoch depends on seed and epoch alone, on every machine and with every standard
// library. Rank r takes every ranks-th sample from r on, so the k-th batches of all ranks together
// are the k-th batch of one rank with `ranks` times the batch size: training does not depend on the
// number of ranks as long as the global batch stays the same.
class Sharding {
 public:
  // Throws std::invalid_argument unless 0 <= rank < ranks.
  explicit Sharding(const ShardingOptions& options);

  // The samples of this rank in this data epoch, in order.
  std::vector<std::size_t> indices(std::uint64_t epoch) const;
  // The number of samples of this rank in an epoch.
  std::size_t size() const;
  // The number of steps of this batch size; the same on all ranks. With kUneven the last batch of
  // some ranks may be shorter, or missing: the number is that of the longest shard.
  std::size_t steps(std::size_t batchSize) const;

 private:
  ShardingOptions options_;
};

}  // namespace farandole
