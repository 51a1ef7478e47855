// Giving every rank the root's model and optimizer, and averaging metrics.
#include <farandole/torch.h>
#include <torch/serialize/archive.h>

#include <array>
#include <limits>
#include <sstream>

#include "tensors.h"

namespace farandole::torch {
namespace {

// More than any optimizer state that fits a machine: a length above it is garbage.
constexpr std::int64_t kLargestState = std::int64_t{1} << 42;
constexpr std::int64_t kFailedAtRoot = -1;

// Ranks with different numbers of tensors would wait for each other forever.
void checkSameCount(std::size_t count, const Options& options) {
  const auto mine = static_cast<std::int64_t>(count);
  std::array<std::int64_t, 2> bounds{mine, -mine};
  allreduce(bounds, ReduceOp::kMin, {.name = options.name + ".count", .set = options.set});
  if (bounds[0] == -bounds[1]) return;
  throw Error(Code::kMismatch,
              "ranks broadcast different numbers of tensors: " + std::to_string(bounds[0]) +
                  " on one, " + std::to_string(-bounds[1]) + " on another, " +
                  std::to_string(mine) + " on rank " + std::to_string(farandole::rank()),
              -1, {}, options.name);
}

std::string serialise(const ::torch::optim::Optimizer& optimizer) {
  ::torch::serialize::OutputArchive archive;
  optimizer.save(archive);
  std::ostringstream stream;
  archive.save_to(stream);
  return std::move(stream).str();
}

}  // namespace

void broadcastParameters(const std::vector<at::Tensor>& tensors, int root, const Options& options) {
  at::NoGradGuard noGrad;
  checkSameCount(tensors.size(), options);
  std::vector<at::Tensor> dense(tensors.size());
  std::vector<std::string> names(tensors.size());
  std::vector<farandole_request> requests(tensors.size(), FARANDOLE_REQUEST_INIT);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    names[i] = options.name + "." + std::to_string(i);
    checkTensor(tensors[i], names[i]);
    dense[i] = tensors[i].detach().contiguous();
    farandole_request& request = requests[i];
    request.operation = FARANDOLE_BROADCAST;
    request.dtype = static_cast<std::int32_t>(dtypeOfTensor(dense[i], names[i]));
    request.root = root;
    request.set = static_cast<farandole_set>(options.set);
    request.name = names[i].c_str();
    request.input = dense[i].data_ptr();
    request.output = dense[i].data_ptr();
    request.output_bytes = static_cast<std::int64_t>(dense[i].nbytes());
    request.shape = dense[i].sizes().data();
    request.ndim = static_cast<std::int32_t>(dense[i].dim());
  }
  std::vector<Handle> handles = detail::submit(requests);
  for (std::size_t i = 0; i < handles.size(); ++i) {
    handles[i].wait();
    if (dense[i].data_ptr() != tensors[i].data_ptr()) tensors[i].detach().copy_(dense[i]);
  }
}

void broadcastParameters(const ::torch::nn::Module& module, int root, const Options& options) {
  std::vector<at::Tensor> tensors = module.parameters();
  for (const at::Tensor& buffer : module.buffers()) {
    if (buffer.defined()) tensors.push_back(buffer);
  }
  broadcastParameters(tensors, root, options);
}

void broadcastOptimizerState(::torch::optim::Optimizer& optimizer, int root,
                             const Options& options) {
  const auto named = [&](const char* part) {
    return Options{.name = options.name + part, .set = options.set};
  };
  const bool isRoot = farandole::rank() == root;
  checkSameCount(optimizer.param_groups().size(), options);

  std::vector<double> rates;
  for (const auto& group : optimizer.param_groups()) rates.push_back(group.options().get_lr());
  broadcast(rates, root, named(".rates"));

  // The root's failure must reach the others before it leaves: they wait for its bytes.
  std::string bytes;
  std::exception_ptr failure;
  std::int64_t length = 0;
  if (isRoot) {
    try {
      bytes = serialise(optimizer);
      length = static_cast<std::int64_t>(bytes.size());
    } catch (...) {
      failure = std::current_exception();
      length = kFailedAtRoot;
    }
  }
  length = broadcast(length, root, named(".length"));
  if (failure) std::rethrow_exception(failure);
  if (length <= 0 || length > kLargestState) {
    throw Error(Code::kUnavailable, "the root could not save its optimizer's state", root, {},
                options.name);
  }
  bytes.resize(static_cast<std::size_t>(length));
  broadcast(bytes, root, named(".state"));
  if (isRoot) return;

  for (std::size_t i = 0; i < rates.size(); ++i) {
    optimizer.param_groups()[i].options().set_lr(rates[i]);
  }
  ::torch::serialize::InputArchive archive;
  archive.load_from(bytes.data(), bytes.size());
  // load() replaces the states that the root has, and keeps others.
  optimizer.state().clear();
  optimizer.load(archive);
}

double averageMetric(double value, double weight, const Options& options) {
  return averageMetrics({value}, weight, options)[0];
}

std::vector<double> averageMetrics(std::vector<double> values, double weight,
                                   const Options& options) {
  // A rank without samples has no average of its own (NaN): it must not spoil the others'.
  for (double& value : values) value = weight == 0.0 ? 0.0 : value * weight;
  values.push_back(weight);
  allreduce(values, ReduceOp::kSum, options);
  const double total = values.back();
  values.pop_back();
  for (double& value : values) {
    value = total == 0.0 ? std::numeric_limits<double>::quiet_NaN() : value / total;
  }
  return values;
}

}  // namespace farandole::torch
