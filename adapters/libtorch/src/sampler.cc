#include <farandole/session.h>
#include <farandole/torch_sampler.h>
#include <torch/serialize/archive.h>

#include <algorithm>

namespace farandole::torch {

DistributedSampler::DistributedSampler(std::size_t samples, std::uint64_t seed, bool shuffle,
                                       ShardRemainder remainder)
    : DistributedSampler(ShardingOptions{.samples = samples,
                                         .rank = farandole::rank(),
                                         .ranks = farandole::size(),
                                         .seed = seed,
                                         .shuffle = shuffle,
                                         .remainder = remainder}) {}

DistributedSampler::DistributedSampler(const ShardingOptions& options) : options_(options) {
  reset();
}

void DistributedSampler::setEpoch(std::uint64_t epoch) {
  epoch_ = epoch;
  reset();
}

void DistributedSampler::reset(c10::optional<std::size_t> samples) {
  if (samples.has_value()) options_.samples = *samples;
  indices_ = Sharding(options_).indices(epoch_);
  next_ = 0;
}

c10::optional<std::vector<std::size_t>> DistributedSampler::next(std::size_t batchSize) {
  const std::size_t count = std::min(batchSize, indices_.size() - next_);
  if (count == 0) return c10::nullopt;
  const auto first = indices_.begin() + static_cast<std::ptrdiff_t>(next_);
  next_ += count;
  return std::vector<std::size_t>(first, first + static_cast<std::ptrdiff_t>(count));
}

void DistributedSampler::save(::torch::serialize::OutputArchive& archive) const {
  archive.write("epoch", at::tensor(static_cast<std::int64_t>(epoch_)), /*is_buffer=*/true);
  archive.write("next", at::tensor(static_cast<std::int64_t>(next_)), /*is_buffer=*/true);
}

void DistributedSampler::load(::torch::serialize::InputArchive& archive) {
  at::Tensor epoch;
  at::Tensor next;
  archive.read("epoch", epoch, /*is_buffer=*/true);
  archive.read("next", next, /*is_buffer=*/true);
  const std::int64_t savedEpoch = epoch.item<std::int64_t>();
  const std::int64_t savedNext = next.item<std::int64_t>();
  TORCH_CHECK(
      savedEpoch >= 0 && savedNext >= 0 && static_cast<std::size_t>(savedNext) <= indices_.size(),
      "the saved sampler does not belong to this shard: sample ", savedNext, " of ",
      indices_.size());
  setEpoch(static_cast<std::uint64_t>(savedEpoch));
  next_ = static_cast<std::size_t>(savedNext);
}

}  // namespace farandole::torch
