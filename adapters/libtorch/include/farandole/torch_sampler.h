// DistributedSampler: Sharding as a sampler for torch::data loaders.
#pragma once

#include <farandole/sharding.h>
#include <torch/data/samplers/base.h>

#include <cstdint>
#include <vector>

namespace farandole::torch {

// This rank's shard, epoch by epoch: call setEpoch(n) before each epoch, or every epoch has the
// order of the first. Remainders as in ShardRemainder. Use from one thread, as every torch sampler.
class DistributedSampler : public ::torch::data::samplers::Sampler<> {
 public:
  // Rank and number of ranks are those of the job, unless given. Farandole must be initialised.
  explicit DistributedSampler(std::size_t samples, std::uint64_t seed = 0, bool shuffle = true,
                              ShardRemainder remainder = ShardRemainder::kRepeat);
  explicit DistributedSampler(const ShardingOptions& options);

  void setEpoch(std::uint64_t epoch);
  std::uint64_t epoch() const { return epoch_; }
  // Samples of this rank in an epoch.
  std::size_t size() const { return indices_.size(); }

  void reset(c10::optional<std::size_t> samples = c10::nullopt) override;
  c10::optional<std::vector<std::size_t>> next(std::size_t batchSize) override;
  // Saves the epoch and the place in it.
  void save(::torch::serialize::OutputArchive& archive) const override;
  // Throws c10::Error if the archive's place does not exist in this shard.
  void load(::torch::serialize::InputArchive& archive) override;

 private:
  ShardingOptions options_;
  std::uint64_t epoch_ = 0;
  std::vector<std::size_t> indices_;
  std::size_t next_ = 0;
};

}  // namespace farandole::torch
