#include "trainer.h"

#include <farandole/torch.h>
#include <torch/optim/sgd.h>
#include <torch/serialize/archive.h>

#include <array>
#include <chrono>
#include <cmath>
#include <optional>
#include <sstream>

#include "checkpoint.h"
#include "network.h"
#include "progress.h"
#include "schedule.h"

namespace fashion {
namespace {

using Clock = std::chrono::steady_clock;

// Small enough that the large last layers are on their way while the convolutions still compute.
constexpr std::size_t kBucketBytes = std::size_t{256} << 10;
constexpr std::size_t kTestBatch = 500;

double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Pixels and labels as tensors over the set's own memory; batches are made on demand.
class Images {
 public:
  explicit Images(ImageSet set) : set_(std::move(set)) {
    const auto extent = [](std::size_t n) { return static_cast<std::int64_t>(n); };
    pixels_ = at::from_blob(set_.pixels.data(),
                            {extent(set_.count), 1, extent(set_.rows), extent(set_.columns)},
                            at::TensorOptions().dtype(at::kByte));
    labels_ = at::from_blob(set_.labels.data(), {extent(set_.count)},
                            at::TensorOptions().dtype(at::kByte));
  }
  const ImageSet& set() const { return set_; }

  // Mean and standard deviation of all pixels.
  std::array<double, 2> moments() const {
    std::array<double, 256> histogram{};
    for (const std::uint8_t pixel : set_.pixels) histogram[pixel] += 1;
    double mean = 0;
    double square = 0;
    for (std::size_t value = 0; value < histogram.size(); ++value) {
      const double share = histogram[value] / static_cast<double>(set_.pixels.size());
      mean += share * static_cast<double>(value);
      square += share * static_cast<double>(value * value);
    }
    return {mean, std::sqrt(std::max(square - mean * mean, 1e-6))};
  }

  at::Tensor images(const at::Tensor& indices, const std::array<double, 2>& moments) const {
    return pixels_.index_select(0, indices).to(at::kFloat).sub_(moments[0]).div_(moments[1]);
  }
  at::Tensor labels(const at::Tensor& indices) const {
    return labels_.index_select(0, indices).to(at::kLong);
  }

 private:
  ImageSet set_;
  at::Tensor pixels_;
  at::Tensor labels_;
};

at::Tensor asTensor(const std::vector<std::size_t>& indices, std::size_t from, std::size_t count) {
  at::Tensor tensor =
      at::empty({static_cast<std::int64_t>(count)}, at::TensorOptions().dtype(at::kLong));
  auto* const to = tensor.data_ptr<std::int64_t>();
  for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<std::int64_t>(indices[from + i]);
  return tensor;
}

}  // namespace

struct Trainer::Parts {
  Parts(const TrainOptions& settings, ImageSet trainSet, ImageSet testSet)
      : options(settings),
        train(std::move(trainSet)),
        test(std::move(testSet)),
        moments(train.moments()),
        network(static_cast<std::int64_t>(train.set().rows),
                static_cast<std::int64_t>(train.set().columns),
                static_cast<std::int64_t>(std::max(train.set().classes, test.set().classes))),
        sgd(network.parameters(), ::torch::optim::SGDOptions(options.learningRate)
                                      .momentum(0.9)
                                      .nesterov(true)
                                      .weight_decay(options.weightDecay)) {
    if (!options.independent) {
      farandole::torch::DistributedOptimizerOptions distributed;
      distributed.bucketBytes = kBucketBytes;
      optimizer.emplace(sgd, distributed);
    }
  }

  const TrainOptions options;
  const Images train;
  const Images test;
  const std::array<double, 2> moments;
  Network network;
  ::torch::optim::SGD sgd;
  std::optional<farandole::torch::DistributedOptimizer> optimizer;  // none: independent
  std::int64_t epochsDone = 0;

  farandole::Sharding shard() const;
  Schedule schedule(std::size_t stepsPerEpoch) const;
  double trainStep(const at::Tensor& indices, double rate);
  double trainEpoch(int epoch, const Schedule& schedule, Progress& progress);
  double accuracy();
  std::string save() const;
  void restore(const std::string& payload);
};

farandole::Sharding Trainer::Parts::shard() const {
  return farandole::Sharding({.samples = train.set().count,
                              .rank = farandole::rank(),
                              .ranks = farandole::size(),
                              .seed = options.seed});
}

Schedule Trainer::Parts::schedule(std::size_t stepsPerEpoch) const {
  const double ranks = options.independent ? 1 : farandole::size();
  return {.peak = options.learningRate * ranks,
          .warmupSteps =
              static_cast<std::size_t>(options.warmupEpochs * static_cast<double>(stepsPerEpoch)),
          .totalSteps = static_cast<std::size_t>(options.epochs) * stepsPerEpoch};
}

// Returns the loss of this rank's batch.
double Trainer::Parts::trainStep(const at::Tensor& indices, double rate) {
  for (auto& group : sgd.param_groups()) group.options().set_lr(rate);
  if (optimizer) {
    optimizer->zeroGrad();
  } else {
    for (at::Tensor& parameter : sgd.parameters()) parameter.mutable_grad() = at::Tensor();
  }
  const at::Tensor output = network.forward(train.images(indices, moments));
  const at::Tensor loss = at::nll_loss(at::log_softmax(output, 1), train.labels(indices));
  loss.backward();
  if (optimizer) {
    optimizer->step();
  } else {
    sgd.step();
    if (options.lockstep) farandole::barrier();
  }
  return loss.item<double>();
}

// Returns the mean loss of this rank.
double Trainer::Parts::trainEpoch(int epoch, const Schedule& schedule, Progress& progress) {
  const std::vector<std::size_t> indices = shard().indices(static_cast<std::uint64_t>(epoch));
  const std::size_t steps = shard().steps(options.batchSize);
  double sum = 0;
  progress.beginEpoch(epoch);
  for (std::size_t step = 0; step < steps; ++step) {
    const std::size_t from = step * options.batchSize;
    const std::size_t count = std::min(options.batchSize, indices.size() - from);
    const std::size_t total = static_cast<std::size_t>(epoch) * steps + step;
    sum += trainStep(asTensor(indices, from, count), schedule.rate(total)) *
           static_cast<double>(count);
    if (progress.due(step + 1)) {
      progress.step(step + 1, sum / static_cast<double>(from + count));
    }
  }
  return sum / static_cast<double>(indices.size());
}

// Every rank tests its shard; shards differ in length by one, which the weights account for.
double Trainer::Parts::accuracy() {
  at::NoGradGuard noGrad;
  const farandole::Sharding part({.samples = test.set().count,
                                  .rank = farandole::rank(),
                                  .ranks = farandole::size(),
                                  .shuffle = false,
                                  .remainder = farandole::ShardRemainder::kUneven});
  const std::vector<std::size_t> indices = part.indices(0);
  std::int64_t correct = 0;
  for (std::size_t from = 0; from < indices.size(); from += kTestBatch) {
    const at::Tensor batch = asTensor(indices, from, std::min(kTestBatch, indices.size() - from));
    const at::Tensor guess = network.forward(test.images(batch, moments)).argmax(1);
    correct += guess.eq(test.labels(batch)).sum().item<std::int64_t>();
  }
  const auto count = static_cast<double>(indices.size());
  return farandole::torch::averageMetric(count > 0 ? static_cast<double>(correct) / count : 0,
                                         count);
}

std::string Trainer::Parts::save() const {
  ::torch::serialize::OutputArchive archive;
  ::torch::serialize::OutputArchive model(archive.compilation_unit());
  ::torch::serialize::OutputArchive state(archive.compilation_unit());
  network.save(model);
  sgd.save(state);
  archive.write("epochs_done", at::full({}, epochsDone, at::TensorOptions().dtype(at::kLong)),
                /*is_buffer=*/true);
  archive.write("model", model);
  archive.write("optimizer", state);
  std::ostringstream stream;
  archive.save_to(stream);
  return std::move(stream).str();
}

void Trainer::Parts::restore(const std::string& payload) {
  ::torch::serialize::InputArchive archive;
  archive.load_from(payload.data(), payload.size());
  ::torch::serialize::InputArchive model;
  ::torch::serialize::InputArchive state;
  archive.read("model", model);
  archive.read("optimizer", state);
  at::Tensor epochs;
  archive.read("epochs_done", epochs, /*is_buffer=*/true);
  network.load(model);
  sgd.load(state);
  epochsDone = epochs.item<std::int64_t>();
  TORCH_CHECK(epochsDone >= 0, "it claims ", epochsDone, " finished epochs");
}

Trainer::Trainer(const TrainOptions& options, ImageSet train, ImageSet test) {
  at::set_num_threads(options.threads);
  // The same initial weights for a seed, on whatever number of ranks.
  ::torch::manual_seed(options.seed);
  parts_ = std::make_unique<Parts>(options, std::move(train), std::move(test));
}

Trainer::~Trainer() = default;

void Trainer::load() {
  if (farandole::rank() != 0) return;
  const std::string payload = readCheckpoint(parts_->options.checkpoint);
  try {
    parts_->restore(payload);
  } catch (const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    throw CheckpointError("checkpoint " + parts_->options.checkpoint.string() +
                          ": does not fit this network: " + text.substr(0, text.find('\n')));
  }
}

void Trainer::shareState() {
  farandole::torch::broadcastParameters(parts_->network, 0);
  farandole::torch::broadcastOptimizerState(parts_->sgd, 0);
  parts_->epochsDone = farandole::broadcast(parts_->epochsDone, 0, {.name = "epochs_done"});
}

Outcome Trainer::run() {
  Parts& parts = *parts_;
  const bool first = farandole::rank() == 0;
  const bool together = !parts.options.independent;
  const auto ranks = static_cast<std::size_t>(farandole::size());
  const std::size_t stepsPerEpoch = parts.shard().steps(parts.options.batchSize);
  const Schedule schedule = parts.schedule(stepsPerEpoch);
  const auto start = static_cast<int>(
      std::min<std::int64_t>(parts.epochsDone, std::int64_t{parts.options.epochs}));
  Progress progress(first, start, parts.options.epochs, stepsPerEpoch,
                    parts.options.batchSize * ranks);

  Outcome outcome;
  double seconds = 0;
  std::size_t images = 0;
  for (int epoch = start; epoch < parts.options.epochs; ++epoch) {
    const Clock::time_point began = Clock::now();
    double loss = parts.trainEpoch(epoch, schedule, progress);
    const double took = secondsSince(began);
    seconds += took;
    images += parts.shard().size();
    parts.epochsDone = epoch + 1;
    if (together) {
      loss = farandole::torch::averageMetric(loss);
      outcome.accuracy = parts.accuracy();
    }
    outcome.loss = loss;
    // Before the line that says the epoch is done.
    if (first && !parts.options.checkpoint.empty()) {
      writeCheckpoint(parts.options.checkpoint, parts.save());
    }
    progress.endEpoch(took, parts.shard().size() * ranks, loss, outcome.accuracy);
  }
  if (together && start == parts.options.epochs) outcome.accuracy = parts.accuracy();
  const double mine = seconds > 0 ? static_cast<double>(images) / seconds : 0;
  outcome.imagesPerSecond = farandole::allreduce(mine, farandole::ReduceOp::kSum);
  return outcome;
}

}  // namespace fashion
