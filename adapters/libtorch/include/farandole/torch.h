// Farandole for LibTorch: train on several ranks by changing five lines.
//
//   farandole::Session session;
//   farandole::torch::broadcastParameters(*model, 0);
//   torch::optim::SGD sgd(model->parameters(), options);
//   farandole::torch::DistributedOptimizer optimizer(sgd);
//   …
//   optimizer.zeroGrad();
//   loss.backward();     // gradients are averaged while this runs
//   optimizer.step();
#pragma once

#include <farandole/farandole.h>
#include <farandole/torch_sampler.h>
#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <memory>
#include <string>
#include <vector>

namespace farandole::torch {

struct DistributedOptimizerOptions {
  // Gradients are reduced in buckets; a bucket takes parameters until it has this many bytes. With
  // smaller ones the first starts earlier, with larger ones there are fewer operations. Adasum,
  // which is defined per tensor, ignores it.
  std::size_t bucketBytes = std::size_t{2} << 20;
  ReduceOp op = ReduceOp::kAverage;
  // Gradients are divided by this before the sum and multiplied by it after: keeps float16 sums of
  // many ranks in range.
  double gradientPredivideFactor = 1.0;
  // The number of backward() calls whose gradients are summed before they are reduced.
  int backwardPassesPerStep = 1;
  ProcessSetId set = kWorld;
  // Names the operations. Two optimizers that are in flight at once need two names.
  std::string name = "gradients";
};

// Wraps an optimizer so that its step uses the gradients of all ranks.
//
// A hook on every parameter copies its gradient, as soon as backward() has produced it, into its
// place in a bucket of shared memory and points p.grad there; when the last gradient of a bucket is
// in, the bucket's allreduce starts, while backward() goes on with earlier layers. So there is one
// copy, and none back. Buckets hold parameters in reverse order of registration. A gradient that is
// already in its place (after zero_grad() instead of zeroGrad()) is not copied.
//
// A parameter without a gradient contributes zeros, and gets the reduction of the others: ranks may
// use different parts of a model. A parameter that no rank used therefore has a gradient of zeros
// after the first step, not an undefined one. Sparse gradients are made dense.
//
// Parameters must be dense CPU tensors, the same on all ranks; those that require no gradient now
// are never reduced. Not thread-safe, but backward() may run on any thread. The wrapped
// optimizer must outlive this one. Destruction removes the hooks; p.grad stays valid.
// Failures throw farandole::Error, which names the rank at fault; so does backward().
class DistributedOptimizer {
 public:
  explicit DistributedOptimizer(::torch::optim::Optimizer& optimizer,
                                const DistributedOptimizerOptions& options = {});
  ~DistributedOptimizer();
  DistributedOptimizer(const DistributedOptimizer&) = delete;
  DistributedOptimizer& operator=(const DistributedOptimizer&) = delete;

  // The wrapped optimizer, for learning rates and schedulers.
  ::torch::optim::Optimizer& wrapped();

  // Waits until p.grad of every parameter is the reduced one; afterwards they may be clipped or
  // looked at, and step() uses them as they are.
  void synchronize();

  // synchronize(), unless it has just been called, then the wrapped optimizer's step.
  void step();
  // For optimizers that evaluate the loss themselves (LBFGS): gradients are reduced after every
  // call of the closure, and the optimizer sees the loss averaged over the ranks, so that all ranks
  // take the same decisions.
  at::Tensor step(const std::function<at::Tensor()>& closure);

  // Makes all gradients undefined (as zero_grad(set_to_none=True) in Python), which saves autograd
  // the addition to zeros.
  void zeroGrad();

  std::size_t bucketCount() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// Gives every rank the root's values. Collective; the numbers of tensors are compared first, their
// shapes and types with the operation.
void broadcastParameters(const std::vector<at::Tensor>& tensors, int root,
                         const Options& options = {.name = "parameters"});
// Parameters and buffers.
void broadcastParameters(const ::torch::nn::Module& module, int root,
                         const Options& options = {.name = "parameters"});

// Gives every rank the root's optimizer state (momenta, step counts) and learning rates. All ranks
// must have the same kind of optimizer with the same groups of parameters.
void broadcastOptimizerState(::torch::optim::Optimizer& optimizer, int root,
                             const Options& options = {.name = "optimizer"});

// The average over all ranks, weighted: the shards of a test set may differ in length. NaN if no
// rank has any weight.
double averageMetric(double value, double weight = 1.0, const Options& options = {});
std::vector<double> averageMetrics(std::vector<double> values, double weight = 1.0,
                                   const Options& options = {});

}  // namespace farandole::torch
