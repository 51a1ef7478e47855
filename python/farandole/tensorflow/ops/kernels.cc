// Collective operations as asynchronous kernels: a thread of TensorFlow only submits, Farandole's
// completion tells TensorFlow that the outputs are there. No thread waits, so that reductions run
// while the rest of the graph does.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "step.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace farandole_ops {
namespace {

using tensorflow::AsyncOpKernel;
using tensorflow::DataType;
using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;

int dtypeOf(DataType type) {
  switch (type) {
    case tensorflow::DT_UINT8: return FARANDOLE_UINT8;
    case tensorflow::DT_INT8: return FARANDOLE_INT8;
    case tensorflow::DT_UINT16: return FARANDOLE_UINT16;
    case tensorflow::DT_INT16: return FARANDOLE_INT16;
    case tensorflow::DT_INT32: return FARANDOLE_INT32;
    case tensorflow::DT_INT64: return FARANDOLE_INT64;
    case tensorflow::DT_HALF: return FARANDOLE_FLOAT16;
    case tensorflow::DT_BFLOAT16: return FARANDOLE_BFLOAT16;
    case tensorflow::DT_FLOAT: return FARANDOLE_FLOAT32;
    case tensorflow::DT_DOUBLE: return FARANDOLE_FLOAT64;
    case tensorflow::DT_BOOL: return FARANDOLE_BOOL;
    case tensorflow::DT_COMPLEX64: return FARANDOLE_COMPLEX64;
    case tensorflow::DT_COMPLEX128: return FARANDOLE_COMPLEX128;
    default: return -1;  // the operations are not registered for other types
  }
}

// No loop of TensorFlow runs more iterations at a time unless parallel_iterations, 10 by itself, is
// larger.
constexpr int64_t kIterations = 16;

// Where TensorFlow puts the body of a function in place of a call it adds parts like "_12", which
// count the nodes of the graph. These may differ between ranks, the rest of the name does not.
std::string withoutCounters(const std::string& name) {
  std::string kept;
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('/', begin), name.size());
    const std::string part = name.substr(begin, end - begin);
    const bool counts = part.size() > 1 && part[0] == '_' &&
                        part.find_first_not_of("0123456789", 1) == std::string::npos;
    if (!counts) kept += kept.empty() ? part : "/" + part;
    begin = end + 1;
  }
  return kept;
}

class Collective : public AsyncOpKernel {
 public:
  explicit Collective(OpKernelConstruction* c) : AsyncOpKernel(c) {
    OP_REQUIRES_OK(c, c->GetAttr("tensor_name", &name_));
    OP_REQUIRES_OK(c, c->GetAttr("process_set", &set_));
    // In a graph the node's own name, which is unique there: "*" asks for it, "*/" for its last
    // part.
    if (name_ == "*") {
      name_ = withoutCounters(name());
    } else if (name_ == "*/") {
      name_ = name().substr(name().rfind('/') + 1);
    }
  }

 protected:
  int set() const { return set_; }

  // Empty: matched between ranks by the order of calls. Iterations of a loop share a node and may
  // run at the same time: kIterations of them have names of their own.
  std::string tensorName(OpKernelContext* context) const {
    const auto iteration = context->frame_iter().iter_id % kIterations;
    if (name_.empty() || iteration == 0) return name_;
    return name_ + "@" + std::to_string(iteration);
  }

  // One of `count` operations, which are one group if they are several: they run together or not
  // at all.
  void fill(OpKernelContext* context, Step& step, size_t index, size_t count, int operation) const {
    const Tensor& input = context->input(static_cast<int>(index));
    auto& request = step.requests[index];
    request.operation = operation;
    request.dtype = dtypeOf(input.dtype());
    request.set = set_;
    request.input = dataOf(input);
    step.setShape(index, input);
    std::string name = tensorName(context);
    if (count > 1) {
      request.group = 1;
      if (!name.empty()) name += "_" + std::to_string(index);
    }
    step.setName(index, std::move(name));
  }

 private:
  std::string name_;
  int set_ = 0;
};

class Reduction : public Collective {
 public:
  explicit Reduction(OpKernelConstruction* c) : Collective(c) {
    OP_REQUIRES_OK(c, c->GetAttr("reduce_op", &op_));
    // Attributes are single precision, these are doubles: they come as text.
    std::string before, after;
    OP_REQUIRES_OK(c, c->GetAttr("prescale", &before));
    OP_REQUIRES_OK(c, c->GetAttr("postscale", &after));
    prescale_ = std::strtod(before.c_str(), nullptr);
    postscale_ = std::strtod(after.c_str(), nullptr);
    OP_REQUIRES_OK(c, c->GetAttr("awaited_by", &awaitedBy_));
  }

 protected:
  void fillReduction(OpKernelContext* context, Step& step, size_t index, size_t count,
                     int operation) const {
    fill(context, step, index, count, operation);
    step.requests[index].op = op_;
    step.requests[index].prescale = prescale_;
    step.requests[index].postscale = postscale_;
    step.awaitedBy = static_cast<AwaitedBy>(awaitedBy_);
  }

 private:
  int op_ = 0;
  double prescale_ = 1;
  double postscale_ = 1;
  int awaitedBy_ = 1;
};

class Allreduce : public Reduction {
 public:
  using Reduction::Reduction;

  void ComputeAsync(OpKernelContext* context, DoneCallback done) override {
    const int count = context->num_inputs();
    if (count == 0) return done();
    std::vector<Tensor*> outputs(count);
    for (int i = 0; i < count; ++i) {
      // Where nothing else reads the input it is reduced in place.
      OP_REQUIRES_OK_ASYNC(
          context,
          context->forward_input_or_allocate_output({i}, i, context->input(i).shape(), &outputs[i]),
          done);
    }
    auto* step = new Step(context, std::move(done), count);
    for (int i = 0; i < count; ++i) {
      fillReduction(context, *step, i, count, FARANDOLE_ALLREDUCE);
      step->requests[i].output = dataOf(*outputs[i]);
      step->requests[i].output_bytes = static_cast<int64_t>(outputs[i]->tensor_data().size());
    }
    step->submit();
  }
};

class Reducescatter : public Reduction {
 public:
  using Reduction::Reduction;

  void ComputeAsync(OpKernelContext* context, DoneCallback done) override {
    const int count = context->num_inputs();
    if (count == 0) return done();
    auto* step = new Step(context, std::move(done), count);
    for (int i = 0; i < count; ++i) {
      fillReduction(context, *step, i, count, FARANDOLE_REDUCESCATTER);
      step->allocateLater(i);
    }
    step->submit();
  }
};

// The rows that came from each member, as a vector: the output at `first` + index.
template <typename T>
Step::Finish takeSplits(int first) {
  return [first](OpKernelContext* context, size_t index, const farandole_result& result) {
    Tensor* sizes = nullptr;
    const auto status = context->allocate_output(first + static_cast<int>(index),
                                                 TensorShape({result.nsplits}), &sizes);
    if (!status.ok()) return context->CtxFailure(status);
    auto values = sizes->vec<T>();
    for (int i = 0; i < result.nsplits; ++i) values(i) = static_cast<T>(result.splits[i]);
  };
}

// All gathered tensors, then the rows of each.
class Allgather : public Collective {
 public:
  using Collective::Collective;

  void ComputeAsync(OpKernelContext* context, DoneCallback done) override {
    const int count = context->num_inputs();
    if (count == 0) return done();
    auto* step = new Step(context, std::move(done), count, takeSplits<int64_t>(count));
    for (int i = 0; i < count; ++i) {
      fill(context, *step, i, count, FARANDOLE_ALLGATHER);
      if (step->shapes[i].empty()) {  // a scalar is a row of one
        step->shapes[i].push_back(1);
        step->requests[i].shape = step->shapes[i].data();
        step->requests[i].ndim = 1;
      }
      step->allocateLater(i);
    }
    step->submit();
  }
};

class Alltoall : public Collective {
 public:
  using Collective::Collective;

  void ComputeAsync(OpKernelContext* context, DoneCallback done) override {
    const Tensor& given = context->input(1);
    OP_REQUIRES_ASYNC(context, given.dims() == 1,
                      absl::InvalidArgumentError("farandole: splits must be a vector"), done);
    const auto values = given.vec<int64_t>();
    const std::vector<int64_t> splits(values.data(), values.data() + values.size());
    auto* step = new Step(context, std::move(done), 1, takeSplits<int32_t>(1));
    fill(context, *step, 0, 1, FARANDOLE_ALLTOALL);
    step->requests[0].nsplits = static_cast<int32_t>(splits.size());
    step->requests[0].splits = splits.empty() ? nullptr : splits.data();
    step->allocateLater(0);
    step->submit();
  }
};

class Broadcast : public Collective {
 public:
  explicit Broadcast(OpKernelConstruction* c) : Collective(c) {
    OP_REQUIRES_OK(c, c->GetAttr("root_rank", &root_));
  }

  void ComputeAsync(OpKernelContext* context, DoneCallback done) override {
    Tensor* output = nullptr;
    OP_REQUIRES_OK_ASYNC(
        context,
        context->forward_input_or_allocate_output({0}, 0, context->input(0).shape(), &output),
        done);
    auto* step = new Step(context, std::move(done), 1);
    fill(context, *step, 0, 1, FARANDOLE_BROADCAST);
    step->requests[0].root = root_;
    step->requests[0].output = dataOf(*output);
    step->requests[0].output_bytes = static_cast<int64_t>(output->tensor_data().size());
    step->submit();
  }

 private:
  int root_ = 0;
};

// Barrier and join: no data.
template <int kOperation>
class Meeting : public Collective {
 public:
  using Collective::Collective;

  void ComputeAsync(OpKernelContext* context, DoneCallback done) override {
    Tensor* output = nullptr;
    OP_REQUIRES_OK_ASYNC(context, context->allocate_output(0, TensorShape({}), &output), done);
    output->scalar<int32_t>()() = 0;
    auto* step = new Step(context, std::move(done), 1,
                          [output](OpKernelContext*, size_t, const farandole_result& result) {
                            output->scalar<int32_t>()() = result.last_joined;
                          });
    auto& request = step->requests[0];
    request.operation = kOperation;
    request.set = set();
    step->setName(0, tensorName(context));
    step->submit();
  }
};

// Ranks and sizes, asked when the graph runs.
class Query : public OpKernel {
 public:
  explicit Query(OpKernelConstruction* c) : OpKernel(c) {
    OP_REQUIRES_OK(c, c->GetAttr("what", &what_));
    OP_REQUIRES_OK(c, c->GetAttr("process_set", &set_));
  }

  void Compute(OpKernelContext* context) override {
    const int rank = library().rank();
    OP_REQUIRES(context, rank >= 0,
                absl::FailedPreconditionError(
                    "farandole: Farandole has not been initialised: call init() first"));
    int value = -1;
    if (what_ == "rank") value = rank;
    if (what_ == "local_rank") value = library().local_rank();
    if (what_ == "local_size") value = library().local_size();
    if (what_ == "size") value = library().set_size(set_);
    if (what_ == "included") value = library().set_rank(set_) >= 0 ? 1 : 0;
    OP_REQUIRES(
        context, value >= 0,
        absl::InvalidArgumentError("farandole: there is no process set " + std::to_string(set_)));
    Tensor* output = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, TensorShape({}), &output));
    output->scalar<int32_t>()() = value;
  }

 private:
  std::string what_;
  int set_ = 0;
};

#define FARANDOLE_KERNEL(name, type) \
  REGISTER_KERNEL_BUILDER(Name(name).Device(tensorflow::DEVICE_CPU), type)

FARANDOLE_KERNEL("FarandoleAllreduce", Allreduce);
FARANDOLE_KERNEL("FarandoleGroupedAllreduce", Allreduce);
FARANDOLE_KERNEL("FarandoleReducescatter", Reducescatter);
FARANDOLE_KERNEL("FarandoleGroupedReducescatter", Reducescatter);
FARANDOLE_KERNEL("FarandoleAllgather", Allgather);
FARANDOLE_KERNEL("FarandoleGroupedAllgather", Allgather);
FARANDOLE_KERNEL("FarandoleAlltoall", Alltoall);
FARANDOLE_KERNEL("FarandoleBroadcast", Broadcast);
FARANDOLE_KERNEL("FarandoleBarrier", Meeting<FARANDOLE_BARRIER>);
FARANDOLE_KERNEL("FarandoleJoin", Meeting<FARANDOLE_JOIN>);
FARANDOLE_KERNEL("FarandoleQuery", Query);

}  // namespace
}  // namespace farandole_ops

// Null, or what is wrong. Python calls it once, before the first operation.
extern "C" __attribute__((visibility("default"))) const char* farandole_ops_bind(const char* path) {
  static std::string error;
  error = farandole_ops::library().bind(path);
  return error.empty() ? nullptr : error.c_str();
}

// Withdraws what waits for other ranks. Python calls it after Ctrl-C.
extern "C" __attribute__((visibility("default"))) void farandole_ops_withdraw_all() {
  farandole_ops::pending().withdrawAll();
}
