// The LibTorch adapter on any number of ranks. Every rank runs every case.
#include <farandole/torch.h>
#include <gtest/gtest.h>
#include <torch/optim/adam.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/sgd.h>
#include <torch/serialize/archive.h>

#include <cmath>
#include <sstream>

namespace {

using farandole::ReduceOp;
using farandole::torch::DistributedOptimizer;
using farandole::torch::DistributedOptimizerOptions;
using ::torch::optim::Optimizer;

using Tensors = std::vector<at::Tensor>;
using MakeOptimizer = std::function<std::unique_ptr<Optimizer>(const Tensors&)>;

// float32 sums in another order: 20 steps of rounding, on values around 1.
constexpr double kTolerance = 2e-5;

int rank() { return farandole::rank(); }
int size() { return farandole::size(); }

at::Tensor parameter(at::IntArrayRef shape) { return (at::randn(shape) * 0.3).requires_grad_(); }

// A network of two layers, one of them stored by columns, and a scale without dimensions. The same
// on all ranks.
Tensors makeModel() {
  ::torch::manual_seed(17);
  Tensors model{parameter({8, 16}), parameter({16}), parameter({16, 4}), at::ones({})};
  at::Tensor byColumns = model[2].detach().t().contiguous().t();
  model[2] = byColumns.requires_grad_();
  model[3] = model[3].requires_grad_();
  return model;
}
at::Tensor forward(const Tensors& model, const at::Tensor& x) {
  return at::tanh(x.mm(model[0]) + model[1]).mm(model[2]) * model[3];
}
at::Tensor lossOf(const Tensors& model, const at::Tensor& x, const at::Tensor& y) {
  return at::mse_loss(forward(model, x), y);
}

void expectSameEverywhere(const at::Tensor& tensor) {
  at::Tensor low = tensor.detach().contiguous().clone();
  at::Tensor high = low.clone();
  const auto span = [](at::Tensor& t) {
    return std::span<float>(t.data_ptr<float>(), static_cast<std::size_t>(t.numel()));
  };
  farandole::allreduce(span(low), ReduceOp::kMin);
  farandole::allreduce(span(high), ReduceOp::kMax);
  EXPECT_TRUE(at::equal(low, high));
}

double difference(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).abs().max().item<double>();
}

// Each rank trains its shard of every global batch, and beside it the whole batch alone.
void trainBothWays(const MakeOptimizer& make, const DistributedOptimizerOptions& options,
                   bool keepZeros = false) {
  const std::int64_t perRank = 6;
  const Tensors together = makeModel();
  const Tensors alone = makeModel();
  const auto wrapped = make(together);
  const auto plain = make(alone);
  DistributedOptimizer optimizer(*wrapped, options);
  for (int step = 0; step < 20; ++step) {
    ::torch::manual_seed(static_cast<std::uint64_t>(1000 + step));
    const at::Tensor x = at::randn({perRank * size(), 8});
    const at::Tensor y = at::randn({perRank * size(), 4});
    if (keepZeros) {
      wrapped->zero_grad();
    } else {
      optimizer.zeroGrad();
    }
    const at::Tensor mineX = x.slice(0, rank() * perRank, (rank() + 1) * perRank);
    const at::Tensor mineY = y.slice(0, rank() * perRank, (rank() + 1) * perRank);
    lossOf(together, mineX, mineY).backward();
    optimizer.step();
    for (const at::Tensor& p : alone) p.mutable_grad() = at::Tensor();
    lossOf(alone, x, y).backward();
    plain->step();
  }
  for (std::size_t i = 0; i < together.size(); ++i) {
    EXPECT_LE(difference(together[i], alone[i]), kTolerance) << "parameter " << i;
    expectSameEverywhere(together[i]);
  }
}

std::unique_ptr<Optimizer> makeSgd(const Tensors& model) {
  return std::make_unique<::torch::optim::SGD>(
      model, ::torch::optim::SGDOptions(0.05).momentum(0.9).weight_decay(1e-3));
}
std::unique_ptr<Optimizer> makeAdam(const Tensors& model) {
  return std::make_unique<::torch::optim::Adam>(model, ::torch::optim::AdamOptions(1e-3));
}

TEST(DistributedOptimizer, EqualsOneRankWithTheGlobalBatch) { trainBothWays(makeSgd, {}); }

TEST(DistributedOptimizer, EqualsOneRankWithTheGlobalBatchWithAdam) {
  // Adam divides by the gradient's size, so that rounding errors do not shrink with it.
  trainBothWays(makeAdam, {});
}

TEST(DistributedOptimizer, BucketsDoNotChangeTheResult) {
  trainBothWays(makeSgd, {.bucketBytes = 1, .name = "tiny"});
  trainBothWays(makeSgd, {.bucketBytes = 600, .name = "some"});
}

TEST(DistributedOptimizer, PredivisionDoesNotChangeTheResult) {
  trainBothWays(makeSgd, {.gradientPredivideFactor = 8.0, .name = "predivided"});
}

TEST(DistributedOptimizer, KeptZerosGiveTheSameAsNoGradients) {
  trainBothWays(makeSgd, {.name = "zeros"}, /*keepZeros=*/true);
}

TEST(DistributedOptimizer, GradientsLieInSharedBuckets) {
  const Tensors model = makeModel();
  const auto sgd = makeSgd(model);
  EXPECT_EQ(DistributedOptimizer(*sgd, {.name = "a"}).bucketCount(), 1U);
  DistributedOptimizer optimizer(*sgd, {.bucketBytes = 1, .name = "b"});
  EXPECT_EQ(optimizer.bucketCount(), model.size());
  std::vector<void*> places;
  for (int step = 0; step < 3; ++step) {
    optimizer.zeroGrad();
    EXPECT_FALSE(model[0].grad().defined());
    lossOf(model, at::ones({2, 8}), at::ones({2, 4})).backward();
    for (std::size_t i = 0; i < model.size(); ++i) {
      const at::Tensor& gradient = model[i].grad();
      EXPECT_EQ(gradient.strides(), model[i].strides());
      if (size() > 1) {
        EXPECT_EQ(farandole_is_shared(gradient.data_ptr(), gradient.nbytes()), 1);
      }
      if (step == 0) places.push_back(gradient.data_ptr());
      EXPECT_EQ(gradient.data_ptr(), places[i]);
    }
    optimizer.step();
  }
}

TEST(DistributedOptimizer, RanksMayUseDifferentParameters) {
  Tensors model;
  for (int r = 0; r <= size(); ++r) model.push_back(at::ones({3}).requires_grad_());
  ::torch::optim::SGD sgd(model, 1.0);
  DistributedOptimizer optimizer(sgd, {.name = "parts"});
  (model[static_cast<std::size_t>(rank())].sum() * 2.0).backward();
  optimizer.synchronize();
  for (int r = 0; r < size(); ++r) {
    const at::Tensor& gradient = model[static_cast<std::size_t>(r)].grad();
    EXPECT_LE(difference(gradient, at::full({3}, 2.0 / size())), 1e-6);
  }
  // Used by nobody.
  EXPECT_EQ(difference(model.back().grad(), at::zeros({3})), 0.0);
}

TEST(DistributedOptimizer, AccumulatesPasses) {
  const Tensors model{at::ones({4}).requires_grad_()};
  ::torch::optim::SGD sgd(model, 1.0);
  DistributedOptimizer optimizer(sgd, {.backwardPassesPerStep = 2, .name = "passes"});
  for (int step = 0; step < 2; ++step) {
    optimizer.zeroGrad();
    (model[0].sum() * 1.0).backward();
    (model[0].sum() * (2.0 + rank())).backward();
    optimizer.synchronize();
    const double expected = 3.0 + (size() - 1) / 2.0;
    EXPECT_LE(difference(model[0].grad(), at::full({4}, expected)), 1e-6);
    optimizer.step();
  }
}

TEST(DistributedOptimizer, TooManyPassesThrowOutOfBackward) {
  const Tensors model{at::ones({4}).requires_grad_()};
  ::torch::optim::SGD sgd(model, 1.0);
  DistributedOptimizer optimizer(sgd, {.name = "many"});
  model[0].sum().backward();
  try {
    model[0].sum().backward();
    FAIL() << "the gradient was in flight";
  } catch (const farandole::Error& error) {
    EXPECT_NE(std::string(error.what()).find("backwardPassesPerStep"), std::string::npos);
  }
  optimizer.synchronize();
}

TEST(DistributedOptimizer, ClipsBetweenSynchronizeAndStep) {
  const Tensors model{at::zeros({4}).requires_grad_()};
  ::torch::optim::SGD sgd(model, 1.0);
  DistributedOptimizer optimizer(sgd, {.name = "clip"});
  (model[0].sum() * (rank() + 1.0)).backward();
  optimizer.synchronize();
  EXPECT_LE(difference(model[0].grad(), at::full({4}, (size() + 1) / 2.0)), 1e-6);
  model[0].grad().clamp_(-0.25, 0.25);
  optimizer.step();
  EXPECT_LE(difference(model[0], at::full({4}, -0.25)), 1e-7);
}

TEST(DistributedOptimizer, SumsWhenAskedTo) {
  const Tensors model{at::zeros({4}).requires_grad_()};
  ::torch::optim::SGD sgd(model, 1.0);
  DistributedOptimizer optimizer(sgd, {.op = ReduceOp::kSum, .name = "sum"});
  model[0].sum().backward();
  optimizer.step();
  EXPECT_LE(difference(model[0], at::full({4}, -1.0 * size())), 1e-6);
}

TEST(DistributedOptimizer, MixesTypesAndLeavesFrozenParametersAlone) {
  const Tensors model{at::zeros({3}).requires_grad_(),
                      at::zeros({3}, at::TensorOptions().dtype(at::kDouble)).requires_grad_(),
                      at::zeros({3})};
  ::torch::optim::SGD sgd(model, 1.0);
  DistributedOptimizer optimizer(sgd, {.name = "types"});
  EXPECT_EQ(optimizer.bucketCount(), 2U);
  (model[0].sum() + model[1].sum() * (1.0 + rank())).backward();
  optimizer.step();
  EXPECT_LE(difference(model[0], at::full({3}, -1.0)), 1e-6);
  EXPECT_LE(std::abs(model[1][0].item<double>() + (size() + 1) / 2.0), 1e-12);
  EXPECT_FALSE(model[2].grad().defined());
}

TEST(DistributedOptimizer, SparseGradientsBecomeDense) {
  const Tensors model{at::zeros({size() + 1, 2}).requires_grad_()};
  ::torch::optim::SGD sgd(model, 1.0);
  DistributedOptimizer optimizer(sgd, {.name = "sparse"});
  const at::Tensor row = at::full({1}, rank(), at::TensorOptions().dtype(at::kLong));
  at::embedding(model[0], row, -1, false, /*sparse=*/true).sum().backward();
  optimizer.step();
  for (int r = 0; r < size(); ++r) {
    EXPECT_LE(difference(model[0][r], at::full({2}, -1.0 / size())), 1e-6);
  }
  EXPECT_EQ(difference(model[0][size()], at::zeros({2})), 0.0);
}

TEST(DistributedOptimizer, ClosuresSeeTheSameLossEverywhere) {
  Tensors model = makeModel();
  // LBFGS itself wants its parameters in the usual order.
  model[2] = model[2].detach().contiguous().requires_grad_();
  ::torch::optim::LBFGS lbfgs(model, ::torch::optim::LBFGSOptions(0.1).max_iter(4));
  DistributedOptimizer optimizer(lbfgs, {.name = "closure"});
  ::torch::manual_seed(static_cast<std::uint64_t>(50 + rank()));
  const at::Tensor x = at::randn({8, 8});
  const at::Tensor y = at::randn({8, 4});
  double before = 0;
  double after = 0;
  for (int step = 0; step < 3; ++step) {
    const at::Tensor loss = optimizer.step([&] {
      optimizer.zeroGrad();
      at::Tensor mine = lossOf(model, x, y);
      mine.backward();
      return mine;
    });
    expectSameEverywhere(loss);
    (step == 0 ? before : after) = loss.item<double>();
  }
  EXPECT_LT(after, before);
  for (const at::Tensor& p : model) expectSameEverywhere(p);
}

TEST(DistributedOptimizer, HooksGoWithIt) {
  const Tensors model = makeModel();
  const auto sgd = makeSgd(model);
  at::Tensor kept;
  {
    DistributedOptimizer optimizer(*sgd, {.name = "gone"});
    const at::Tensor loss = lossOf(model, at::ones({2, 8}), at::ones({2, 4}));
    loss.backward();
    optimizer.synchronize();
    kept = model[0].grad();
  }
  const at::Tensor copy = kept.clone();
  // Nothing is sent, and the old gradient's memory is still there.
  const auto before = farandole::counters().operations;
  for (const at::Tensor& p : model) p.mutable_grad() = at::Tensor();
  lossOf(model, at::ones({2, 8}), at::ones({2, 4})).backward();
  EXPECT_EQ(farandole::counters().operations, before);
  EXPECT_TRUE(at::equal(kept, copy));
  EXPECT_EQ(farandole_is_shared(model[0].grad().data_ptr(), 4), 0);
  farandole::barrier();
}

TEST(DistributedOptimizer, RefusesBadSettings) {
  const Tensors model = makeModel();
  const auto sgd = makeSgd(model);
  EXPECT_THROW(DistributedOptimizer(*sgd, {.gradientPredivideFactor = 0}), farandole::Error);
  EXPECT_THROW(DistributedOptimizer(*sgd, {.backwardPassesPerStep = 0}), farandole::Error);
  EXPECT_THROW(DistributedOptimizer(*sgd, {.set = farandole::ProcessSetId{12345}}),
               farandole::Error);
}

TEST(Broadcast, GivesEveryRankTheRootsTensors) {
  const int root = size() - 1;
  const auto options = at::TensorOptions();
  Tensors tensors{at::full({3, 5}, rank()), at::full({4, 6}, rank()).t(),
                  at::full({}, rank(), options.dtype(at::kLong)),
                  at::full({2}, rank() == root, options.dtype(at::kBool)), at::empty({0, 3})};
  const auto strides = tensors[1].strides().vec();
  farandole::torch::broadcastParameters(tensors, root);
  EXPECT_EQ(difference(tensors[0], at::full({3, 5}, root)), 0.0);
  EXPECT_EQ(difference(tensors[1], at::full({6, 4}, root)), 0.0);
  EXPECT_EQ(tensors[1].strides().vec(), strides);
  EXPECT_EQ(tensors[2].item<std::int64_t>(), root);
  EXPECT_TRUE(tensors[3].all().item<bool>());
}

TEST(Broadcast, DifferentNumbersOfTensorsAreAnErrorEverywhere) {
  if (size() == 1) GTEST_SKIP() << "needs two opinions";
  const Tensors tensors(rank() == 0 ? 2 : 3, at::zeros({2}));
  try {
    farandole::torch::broadcastParameters(tensors, 0);
    FAIL();
  } catch (const farandole::Error& error) {
    EXPECT_EQ(error.code(), farandole::Code::kMismatch);
  }
}

void stepAlone(Optimizer& optimizer, const Tensors& model, double factor) {
  for (const at::Tensor& p : model) p.mutable_grad() = at::Tensor();
  (lossOf(model, at::ones({2, 8}), at::ones({2, 4})) * factor).backward();
  optimizer.step();
}

// Rank 0 has trained; the others have not, or have trained something else.
void resumeEverywhere(const MakeOptimizer& make) {
  const Tensors model = makeModel();
  const auto optimizer = make(model);
  for (int step = 0; step < (rank() == 0 ? 3 : rank() % 2); ++step) {
    stepAlone(*optimizer, model, 1.0 + rank());
  }
  optimizer->param_groups()[0].options().set_lr(rank() == 0 ? 0.25 : 0.5);
  farandole::torch::broadcastParameters(model, 0);
  farandole::torch::broadcastOptimizerState(*optimizer, 0);
  EXPECT_EQ(optimizer->param_groups()[0].options().get_lr(), 0.25);
  // Without the root's momenta the next steps would differ.
  for (int step = 0; step < 2; ++step) stepAlone(*optimizer, model, 1.0);
  for (const at::Tensor& p : model) expectSameEverywhere(p);
}

TEST(Broadcast, OptimizerStateOfSgd) { resumeEverywhere(makeSgd); }
TEST(Broadcast, OptimizerStateOfAdam) { resumeEverywhere(makeAdam); }

TEST(Broadcast, OptimizerStateThatIsEmpty) {
  const Tensors model = makeModel();
  const auto optimizer = makeSgd(model);
  if (rank() != 0) stepAlone(*optimizer, model, 2.0);
  farandole::torch::broadcastParameters(model, 0);
  farandole::torch::broadcastOptimizerState(*optimizer, 0);
  stepAlone(*optimizer, model, 1.0);
  for (const at::Tensor& p : model) expectSameEverywhere(p);
}

TEST(Metrics, AreWeighted) {
  EXPECT_NEAR(farandole::torch::averageMetric(rank()), (size() - 1) / 2.0, 1e-12);
  // A rank without samples has nothing to say, not even NaN.
  const bool idle = size() > 1 && rank() == 0;
  const double value = idle ? std::nan("") : 2.0;
  EXPECT_NEAR(farandole::torch::averageMetric(value, idle ? 0.0 : 5.0), 2.0, 1e-12);
  EXPECT_TRUE(std::isnan(farandole::torch::averageMetric(1.0, 0.0)));
  const std::vector<double> both = farandole::torch::averageMetrics({1.0, rank() + 1.0});
  EXPECT_NEAR(both[0], 1.0, 1e-12);
  EXPECT_NEAR(both[1], (size() + 1) / 2.0, 1e-12);
}

TEST(DistributedSampler, CoversEverythingOnce) {
  farandole::torch::DistributedSampler sampler(103, 5, true, farandole::ShardRemainder::kUneven);
  sampler.setEpoch(3);
  std::vector<std::int64_t> mine;
  while (const auto batch = sampler.next(10)) mine.insert(mine.end(), batch->begin(), batch->end());
  EXPECT_EQ(mine.size(), sampler.size());
  std::vector<std::int64_t> all = farandole::allgather(mine);
  std::sort(all.begin(), all.end());
  ASSERT_EQ(all.size(), 103U);
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], static_cast<std::int64_t>(i));
}

TEST(DistributedSampler, GoesOnWhereItWasSaved) {
  const farandole::ShardingOptions options{.samples = 50, .rank = 0, .ranks = 2, .seed = 1};
  farandole::torch::DistributedSampler sampler(options);
  sampler.setEpoch(2);
  (void)sampler.next(7);
  ::torch::serialize::OutputArchive out;
  sampler.save(out);
  std::stringstream stream;
  out.save_to(stream);
  const std::string bytes = stream.str();
  ::torch::serialize::InputArchive in;
  in.load_from(bytes.data(), bytes.size());
  farandole::torch::DistributedSampler other(options);
  other.load(in);
  EXPECT_EQ(other.epoch(), 2U);
  EXPECT_EQ(*other.next(100), *sampler.next(100));
  EXPECT_FALSE(other.next(1).has_value());

  farandole::ShardingOptions smaller = options;
  smaller.samples = 6;
  farandole::torch::DistributedSampler small(smaller);
  EXPECT_THROW(small.load(in), c10::Error);
}

}  // namespace
