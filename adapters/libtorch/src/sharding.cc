#include <farandole/sharding.h>

#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>

namespace farandole {
namespace {

// A number below bound. The standard's distributions differ between libraries, and all ranks must
// agree; the high half of a 64 × 64 bit product is uniform enough (bias < bound / 2^64).
std::uint64_t below(std::mt19937_64& generator, std::uint64_t bound) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((static_cast<Wide>(generator()) * bound) >> 64);
}

// Neighbouring seeds and epochs must not give related generators.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

}  // namespace

Sharding::Sharding(const ShardingOptions& options) : options_(options) {
  if (options.ranks < 1 || options.rank < 0 || options.rank >= options.ranks) {
    throw std::invalid_argument("there is no shard " + std::to_string(options.rank) + " of " +
                                std::to_string(options.ranks) + ": is Farandole initialised?");
  }
}

std::vector<std::size_t> Sharding::indices(std::uint64_t epoch) const {
  std::vector<std::size_t> order(options_.samples);
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (options_.shuffle) {
    std::mt19937_64 generator(mix(mix(options_.seed) ^ epoch));
    for (std::size_t i = order.size(); i > 1; --i) {
      std::swap(order[i - 1], order[below(generator, i)]);
    }
  }
  const std::size_t count = size();
  const auto ranks = static_cast<std::size_t>(options_.ranks);
  std::vector<std::size_t> shard;
  shard.reserve(count);
  for (std::size_t k = 0; k < count; ++k) {
    // Beyond the end only with kRepeat.
    shard.push_back(order[(static_cast<std::size_t>(options_.rank) + k * ranks) % order.size()]);
  }
  return shard;
}

std::size_t Sharding::size() const {
  const auto ranks = static_cast<std::size_t>(options_.ranks);
  const std::size_t whole = options_.samples / ranks;
  const std::size_t rest = options_.samples % ranks;
  switch (options_.remainder) {
    case ShardRemainder::kRepeat: return whole + (rest > 0 ? 1 : 0);
    case ShardRemainder::kDrop: return whole;
    case ShardRemainder::kUneven:
      return whole + (static_cast<std::size_t>(options_.rank) < rest ? 1 : 0);
  }
  return whole;
}

std::size_t Sharding::steps(std::size_t batchSize) const {
  if (batchSize == 0) throw std::invalid_argument("a batch needs at least one sample");
  const auto ranks = static_cast<std::size_t>(options_.ranks);
  const bool longest = options_.remainder != ShardRemainder::kDrop && options_.samples % ranks != 0;
  const std::size_t count = options_.samples / ranks + (longest ? 1 : 0);
  return count / batchSize + (count % batchSize != 0 ? 1 : 0);
}

}  // namespace farandole
