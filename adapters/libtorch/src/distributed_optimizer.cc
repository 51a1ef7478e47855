#include <farandole/torch.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include <map>
#include <mutex>

#include "tensors.h"

namespace farandole::torch {
namespace {

constexpr std::size_t kAlignment = 64;

std::size_t aligned(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

using Memory = std::shared_ptr<SharedBuffer<std::byte>>;

// A tensor of the parameter's shape over the bucket's memory, which it keeps alive: p.grad may
// outlive the optimizer. The strides are those that autograd wants a gradient to have.
at::Tensor viewFor(const at::Tensor& parameter, const Memory& memory, std::size_t offset) {
  const auto options = at::TensorOptions().dtype(parameter.scalar_type());
  std::byte* const place = memory->data() + offset;
  const auto keep = [memory](void*) {};
  if (!parameter.is_non_overlapping_and_dense()) {
    return at::from_blob(place, parameter.sizes(), keep, options);
  }
  return at::from_blob(place, parameter.sizes(), parameter.strides(), keep, options);
}

class AfterAccumulation : public ::torch::autograd::FunctionPostHook {
 public:
  explicit AfterAccumulation(std::function<void()> action) : action_(std::move(action)) {}
  ::torch::autograd::variable_list operator()(
      const ::torch::autograd::variable_list& outputs,
      const ::torch::autograd::variable_list& /*inputs*/) override {
    action_();
    return outputs;
  }

 private:
  std::function<void()> action_;
};

// A hook behind the accumulation of one parameter's gradient, for the life of this object. A
// variable knows its accumulator only weakly, so this keeps it alive.
class Hook {
 public:
  Hook(const at::Tensor& parameter, std::function<void()> action)
      : accumulator_(::torch::autograd::impl::grad_accumulator(parameter)),
        key_(accumulator_->add_post_hook(std::make_unique<AfterAccumulation>(std::move(action)))) {}
  ~Hook() {
    if (accumulator_) accumulator_->del_post_hook(key_);
  }
  Hook(Hook&&) = default;
  Hook(const Hook&) = delete;
  Hook& operator=(const Hook&) = delete;
  Hook& operator=(Hook&&) = delete;

 private:
  std::shared_ptr<::torch::autograd::Node> accumulator_;
  std::uintptr_t key_;
};

struct Slot {
  at::Tensor parameter;
  std::string name;
  std::size_t bucket = 0;
  std::size_t offset = 0;
  at::Tensor place;    // in the bucket
  int passes = 0;      // backward passes since the last step
  bool ready = false;  // the gradient is in its place
};

struct Bucket {
  std::string name;
  DType dtype = DType::kFloat32;
  std::size_t elementSize = 0;
  std::size_t bytes = 0;
  std::vector<std::size_t> slots;
  std::size_t missing = 0;  // slots that are not ready
  Memory memory;
  Handle handle;  // after the memory: its operation ends before the memory goes
};

}  // namespace

// Owned by the optimizer alone: hooks hold it weakly.
struct DistributedOptimizer::State {
  State(::torch::optim::Optimizer& wrapped, const DistributedOptimizerOptions& settings)
      : optimizer(wrapped), options(settings) {}

  // Constant after construction.
  ::torch::optim::Optimizer& optimizer;
  const DistributedOptimizerOptions options;

  // Guarded by mutex: hooks run on autograd's threads.
  std::mutex mutex;
  std::vector<Slot> slots;
  std::vector<Bucket> buckets;
  bool synchronized = false;

  // Hooks go first.
  std::vector<Hook> hooks;

  void collectParameters();
  void fillBuckets();
  void allocateBuckets();
  void gradientReady(std::size_t index);
  void moveIn(Slot& slot);
  void submit(Bucket& bucket);
  void synchronizeAll();
  void startOver();
};

void DistributedOptimizer::State::collectParameters() {
  std::size_t index = 0;
  for (const auto& group : optimizer.param_groups()) {
    for (const at::Tensor& parameter : group.params()) {
      const std::string name = "parameter " + std::to_string(index++);
      if (!parameter.requires_grad()) continue;
      checkTensor(parameter, name);
      Slot slot;
      slot.parameter = parameter;
      slot.name = name;
      slots.push_back(std::move(slot));
    }
  }
}

// Last parameters first: backward() produces their gradients first.
void DistributedOptimizer::State::fillBuckets() {
  const std::size_t limit = options.op == ReduceOp::kAdasum ? 0 : options.bucketBytes;
  std::map<DType, std::size_t> open;
  for (std::size_t i = slots.size(); i-- > 0;) {
    Slot& slot = slots[i];
    const DType dtype = dtypeOfTensor(slot.parameter, slot.name);
    const std::size_t bytes =
        aligned(static_cast<std::size_t>(slot.parameter.numel()) * slot.parameter.element_size());
    const auto found = open.find(dtype);
    if (found == open.end() || buckets[found->second].bytes >= limit) {
      open[dtype] = buckets.size();
      buckets.emplace_back();
      buckets.back().dtype = dtype;
      buckets.back().elementSize = slot.parameter.element_size();
    }
    slot.bucket = open[dtype];
    Bucket& bucket = buckets[slot.bucket];
    slot.offset = bucket.bytes;
    bucket.bytes += bytes;
    bucket.slots.push_back(i);
  }
}

void DistributedOptimizer::State::allocateBuckets() {
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    Bucket& bucket = buckets[b];
    // Ranks that cut their models differently must not meet under one name.
    bucket.name = options.name + "." + std::to_string(b) + "/" + std::to_string(buckets.size());
    bucket.memory = std::make_shared<SharedBuffer<std::byte>>(bucket.bytes);
    bucket.missing = bucket.slots.size();
    for (const std::size_t i : bucket.slots) {
      slots[i].place = viewFor(slots[i].parameter, bucket.memory, slots[i].offset);
    }
  }
}

// Runs inside backward(), after the gradient has been added to p.grad.
void DistributedOptimizer::State::gradientReady(std::size_t index) {
  const std::lock_guard lock(mutex);
  Slot& slot = slots[index];
  synchronized = false;
  if (++slot.passes > options.backwardPassesPerStep) {
    throw Error(Code::kInvalidArgument,
                slot.name + " got a gradient for the " + std::to_string(slot.passes) +
                    ". time since the last step; set backwardPassesPerStep to the number of "
                    "backward() calls per step()",
                farandole::rank(), {}, buckets[slot.bucket].name);
  }
  if (slot.passes < options.backwardPassesPerStep) return;
  moveIn(slot);
  Bucket& bucket = buckets[slot.bucket];
  if (bucket.missing == 0) submit(bucket);
}

void DistributedOptimizer::State::moveIn(Slot& slot) {
  at::NoGradGuard noGrad;
  at::Tensor& gradient = slot.parameter.mutable_grad();
  if (!gradient.defined()) {
    slot.place.zero_();
  } else if (gradient.is_sparse()) {
    slot.place.copy_(gradient.to_dense());
  } else if (gradient.data_ptr() != slot.place.data_ptr()) {
    slot.place.copy_(gradient);
  }
  gradient = slot.place;
  slot.ready = true;
  --buckets[slot.bucket].missing;
}

void DistributedOptimizer::State::submit(Bucket& bucket) {
  const auto count = static_cast<std::int64_t>(bucket.bytes / bucket.elementSize);
  farandole_request request = FARANDOLE_REQUEST_INIT;
  request.operation = FARANDOLE_ALLREDUCE;
  request.dtype = static_cast<std::int32_t>(bucket.dtype);
  request.op = static_cast<std::int32_t>(options.op);
  request.set = static_cast<farandole_set>(options.set);
  request.name = bucket.name.c_str();
  request.input = bucket.memory->data();
  request.output = bucket.memory->data();
  request.shape = &count;
  request.ndim = 1;
  request.prescale = 1.0 / options.gradientPredivideFactor;
  request.postscale = options.gradientPredivideFactor;
  bucket.handle = detail::submit(request);
}

void DistributedOptimizer::State::synchronizeAll() {
  const std::lock_guard lock(mutex);
  if (synchronized) return;
  for (Bucket& bucket : buckets) {
    if (bucket.handle.valid()) continue;
    for (const std::size_t i : bucket.slots) {
      if (!slots[i].ready) moveIn(slots[i]);
    }
    submit(bucket);
  }
  // All are waited for even if one fails: the next step must find none in flight.
  std::exception_ptr failure;
  for (Bucket& bucket : buckets) {
    try {
      bucket.handle.wait();
    } catch (...) {
      if (!failure) failure = std::current_exception();
    }
  }
  startOver();
  if (failure) std::rethrow_exception(failure);
  synchronized = true;
}

void DistributedOptimizer::State::startOver() {
  for (Bucket& bucket : buckets) {
    bucket.handle = Handle();
    bucket.missing = bucket.slots.size();
  }
  for (Slot& slot : slots) {
    slot.passes = 0;
    slot.ready = false;
  }
}

DistributedOptimizer::DistributedOptimizer(::torch::optim::Optimizer& optimizer,
                                           const DistributedOptimizerOptions& options)
    : state_(std::make_shared<State>(optimizer, options)) {
  if (options.backwardPassesPerStep < 1 || !(options.gradientPredivideFactor > 0.0)) {
    throw Error(Code::kInvalidArgument,
                "backwardPassesPerStep must be at least 1 and gradientPredivideFactor positive");
  }
  if (farandole_set_rank(static_cast<farandole_set>(options.set)) < 0) {
    throw Error(Code::kInvalidArgument,
                "a DistributedOptimizer needs farandole::init() and a process set that this rank "
                "is a member of");
  }
  state_->collectParameters();
  state_->fillBuckets();
  state_->allocateBuckets();
  state_->hooks.reserve(state_->slots.size());
  for (std::size_t i = 0; i < state_->slots.size(); ++i) {
    // Weakly: a graph may keep accumulators and their hooks alive longer than their removal takes.
    state_->hooks.emplace_back(state_->slots[i].parameter,
                               [weak = std::weak_ptr<State>(state_), i] {
                                 if (const auto state = weak.lock()) state->gradientReady(i);
                               });
  }
}

DistributedOptimizer::~DistributedOptimizer() = default;

::torch::optim::Optimizer& DistributedOptimizer::wrapped() { return state_->optimizer; }

void DistributedOptimizer::synchronize() { state_->synchronizeAll(); }

void DistributedOptimizer::step() {
  state_->synchronizeAll();
  state_->optimizer.step();
  state_->synchronized = false;
}

at::Tensor DistributedOptimizer::step(const std::function<at::Tensor()>& closure) {
  at::Tensor loss = state_->optimizer.step([&] {
    state_->synchronized = false;
    at::Tensor mine = closure();
    state_->synchronizeAll();
    const double mean =
        averageMetric(mine.item<double>(), 1.0,
                      {.name = state_->options.name + ".loss", .set = state_->options.set});
    return at::full_like(mine.detach(), mean);
  });
  state_->synchronized = false;
  return loss;
}

void DistributedOptimizer::zeroGrad() {
  for (auto& group : state_->optimizer.param_groups()) {
    for (at::Tensor& parameter : group.params()) parameter.mutable_grad() = at::Tensor();
  }
}

std::size_t DistributedOptimizer::bucketCount() const { return state_->buckets.size(); }

}  // namespace farandole::torch
