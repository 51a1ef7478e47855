#include "collective/gloo/plugin/communicator.h"

#include <gloo/allgatherv.h>
#include <gloo/allreduce.h>
#include <gloo/alltoallv.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/gather.h>
#include <gloo/reduce.h>
#include <gloo/scatter.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <numeric>
#include <utility>

#include "base/thread.h"
#include "collective/operation.h"

namespace farandole::collective::gloo::plugin {
namespace {

// Gloo knows of an element nothing but its size.
template <std::size_t N>
struct Element {
  std::uint8_t bytes[N];
};

template <typename Use>
void withElement(std::size_t bytes, Use use) {
  switch (bytes) {
    case 1: return use(Element<1>{});
    case 2: return use(Element<2>{});
    case 4: return use(Element<4>{});
    case 8: return use(Element<8>{});
    default: return use(Element<16>{});
  }
}

std::size_t bytesOf(std::int64_t count, DType dtype) {
  return static_cast<std::size_t>(count) * sizeOf(dtype);
}

std::function<void(void*, const void*, const void*, std::size_t)> kernel(DType dtype, ReduceOp op) {
  return [dtype, op](void* out, const void* first, const void* second, std::size_t count) {
    void* const destinations[] = {out};
    const void* const sources[] = {first, second};
    farandole::reduce(destinations, sources, static_cast<std::int64_t>(count), dtype, op, Scale{},
                      Store::kCached);
  };
}

// Below, one message each way is over before a thread of Gloo's has begun.
constexpr std::size_t kLeastBytes = std::size_t{64} << 10;

// Sums and their scaling at the end; everything else that scales is not Gloo's.
bool canReduce(DType dtype, ReduceOp op, const Scale& scale) {
  if (op == ReduceOp::kAdasum || dtype == DType::kFloat16 || dtype == DType::kBfloat16) {
    return false;
  }
  if (scale.identity() && op != ReduceOp::kAverage) return true;
  return scale.pre == 1.0 && (dtype == DType::kFloat32 || dtype == DType::kFloat64);
}

void finish(void* memory, std::int64_t count, DType dtype, const Scale& scale) {
  if (scale.identity()) return;
  void* const destinations[] = {memory};
  const void* const sources[] = {memory};
  farandole::reduce(destinations, sources, count, dtype, ReduceOp::kSum, scale, Store::kCached);
}

bool even(std::span<const std::int64_t> counts) {
  return std::all_of(counts.begin(), counts.end(),
                     [&](std::int64_t count) { return count == counts.front(); });
}

::gloo::AllreduceOptions::Algorithm algorithmOf(GlooAlgorithm algorithm) {
  switch (algorithm) {
    case GlooAlgorithm::kRing: return ::gloo::AllreduceOptions::Algorithm::RING;
    case GlooAlgorithm::kBcube: return ::gloo::AllreduceOptions::Algorithm::BCUBE;
    case GlooAlgorithm::kAny: break;
  }
  return ::gloo::AllreduceOptions::Algorithm::UNSPECIFIED;
}

}  // namespace

OperationPtr GlooCommunicator::allreduce(std::span<const Piece> pieces, DType dtype, ReduceOp op,
                                         Scale scale) {
  std::size_t total = 0;
  for (const Piece& piece : pieces) total += bytesOf(piece.count, dtype);
  if (other_ && (total < kLeastBytes || !canReduce(dtype, op, scale))) {
    return other_->allreduce(pieces, dtype, op, scale);
  }
  if (!canReduce(dtype, op, scale)) return unable("such a reduction");
  if (op == ReduceOp::kAverage) scale.divisor *= size_;
  const ReduceOp plain = op == ReduceOp::kAverage ? ReduceOp::kSum : op;
  return start([this, dtype, plain, scale,
                all = std::vector<Piece>(pieces.begin(), pieces.end())](std::uint32_t tag) {
    std::int64_t count = 0;
    for (const Piece& piece : all) count += piece.count;
    if (count == 0) return;
    // One array for Gloo.
    std::vector<std::uint8_t> packed;
    std::uint8_t* memory = static_cast<std::uint8_t*>(all.front().out);
    if (all.size() > 1) {
      packed.resize(bytesOf(count, dtype));
      memory = packed.data();
    }
    std::size_t at = 0;
    for (const Piece& piece : all) {
      const std::size_t bytes = bytesOf(piece.count, dtype);
      if (bytes > 0 && piece.in != memory + at) std::memcpy(memory + at, piece.in, bytes);
      at += bytes;
    }
    ::gloo::AllreduceOptions options(context_);
    withElement(sizeOf(dtype), [&](auto element) {
      using T = decltype(element);
      options.setOutput(reinterpret_cast<T*>(memory), static_cast<std::size_t>(count));
    });
    options.setAlgorithm(algorithmOf(algorithm_));
    options.setReduceFunction(kernel(dtype, plain));
    options.setTag(tag);
    ::gloo::allreduce(options);
    finish(memory, count, dtype, scale);
    at = 0;
    for (const Piece& piece : all) {
      const std::size_t bytes = bytesOf(piece.count, dtype);
      if (bytes > 0 && piece.out != memory + at) std::memcpy(piece.out, memory + at, bytes);
      at += bytes;
    }
  });
}

OperationPtr GlooCommunicator::allgather(const void* in, void* out,
                                         std::span<const std::int64_t> counts, DType dtype) {
  std::vector<std::size_t> sizes;
  for (const std::int64_t count : counts) sizes.push_back(bytesOf(count, dtype));
  return start([this, in, out, sizes](std::uint32_t tag) {
    if (std::accumulate(sizes.begin(), sizes.end(), std::size_t{0}) == 0) return;
    ::gloo::AllgathervOptions options(context_);
    options.setInput(static_cast<std::uint8_t*>(const_cast<void*>(in)),
                     sizes[static_cast<std::size_t>(me_)]);
    options.setOutput(static_cast<std::uint8_t*>(out), sizes);
    options.setTag(tag);
    ::gloo::allgatherv(options);
  });
}

OperationPtr GlooCommunicator::broadcast(std::span<const Piece> pieces, DType dtype, int root) {
  return start([this, dtype, root,
                all = std::vector<Piece>(pieces.begin(), pieces.end())](std::uint32_t tag) {
    for (const Piece& piece : all) {
      const std::size_t bytes = bytesOf(piece.count, dtype);
      if (bytes == 0) continue;
      if (me_ == root && piece.out != piece.in) std::memcpy(piece.out, piece.in, bytes);
      ::gloo::BroadcastOptions options(context_);
      options.setOutput(static_cast<std::uint8_t*>(piece.out), bytes);
      options.setRoot(root);
      options.setTag(tag);
      ::gloo::broadcast(options);
    }
  });
}

OperationPtr GlooCommunicator::alltoall(const void* in, std::span<const std::int64_t> sendCounts,
                                        void* out, std::span<const std::int64_t> receiveCounts,
                                        DType dtype) {
  const auto toBytes = [dtype](std::span<const std::int64_t> counts) {
    std::vector<std::int64_t> bytes;
    for (const std::int64_t count : counts) {
      bytes.push_back(static_cast<std::int64_t>(bytesOf(count, dtype)));
    }
    return bytes;
  };
  return start([this, in, out, sends = toBytes(sendCounts),
                receives = toBytes(receiveCounts)](std::uint32_t tag) {
    ::gloo::AlltoallvOptions options(context_);
    options.setInput(static_cast<std::uint8_t*>(const_cast<void*>(in)), sends);
    options.setOutput(static_cast<std::uint8_t*>(out), receives);
    options.setTag(tag);
    ::gloo::alltoallv(options);
  });
}

OperationPtr GlooCommunicator::reducescatter(const void* in, void* out,
                                             std::span<const std::int64_t> counts, DType dtype,
                                             ReduceOp op, Scale scale) {
  return other_ ? other_->reducescatter(in, out, counts, dtype, op, scale)
                : unable("reducescatter");
}

OperationPtr GlooCommunicator::reduce(const void* in, void* out, std::int64_t count, DType dtype,
                                      ReduceOp op, Scale scale, int root) {
  if (!canReduce(dtype, op, scale)) {
    return other_ ? other_->reduce(in, out, count, dtype, op, scale, root)
                  : unable("such a reduction");
  }
  if (op == ReduceOp::kAverage) scale.divisor *= size_;
  const ReduceOp plain = op == ReduceOp::kAverage ? ReduceOp::kSum : op;
  return start([=, this](std::uint32_t tag) {
    if (count == 0) return;
    const std::size_t bytes = bytesOf(count, dtype);
    // Gloo works in the output of every member; ours have none but the root's.
    std::vector<std::uint8_t> work;
    void* memory = out;
    if (me_ != root) {
      work.resize(bytes);
      memory = work.data();
    }
    if (memory != in) std::memcpy(memory, in, bytes);
    ::gloo::ReduceOptions options(context_);
    withElement(sizeOf(dtype), [&](auto element) {
      using T = decltype(element);
      options.setOutput(static_cast<T*>(memory), static_cast<std::size_t>(count));
    });
    options.setReduceFunction(kernel(dtype, plain));
    options.setRoot(root);
    options.setTag(tag);
    ::gloo::reduce(options);
    if (me_ == root) finish(memory, count, dtype, scale);
  });
}

OperationPtr GlooCommunicator::gather(const void* in, void* out,
                                      std::span<const std::int64_t> counts, DType dtype, int root) {
  if (!even(counts)) {
    return other_ ? other_->gather(in, out, counts, dtype, root) : unable("gather of uneven parts");
  }
  const std::size_t bytes = bytesOf(counts.front(), dtype);
  return start([=, this](std::uint32_t tag) {
    if (bytes == 0) return;
    ::gloo::GatherOptions options(context_);
    options.setInput(static_cast<std::uint8_t*>(const_cast<void*>(in)), bytes);
    if (me_ == root) {
      options.setOutput(static_cast<std::uint8_t*>(out), bytes * static_cast<std::size_t>(size_));
    }
    options.setRoot(root);
    options.setTag(tag);
    ::gloo::gather(options);
  });
}

OperationPtr GlooCommunicator::scatter(const void* in, void* out,
                                       std::span<const std::int64_t> counts, DType dtype,
                                       int root) {
  if (!even(counts)) {
    return other_ ? other_->scatter(in, out, counts, dtype, root)
                  : unable("scatter of uneven parts");
  }
  const std::size_t bytes = bytesOf(counts.front(), dtype);
  return start([=, this](std::uint32_t tag) {
    if (bytes == 0) return;
    ::gloo::ScatterOptions options(context_);
    if (me_ == root) {
      std::vector<std::uint8_t*> parts;
      auto* first = static_cast<std::uint8_t*>(const_cast<void*>(in));
      for (int i = 0; i < size_; ++i) parts.push_back(first + static_cast<std::size_t>(i) * bytes);
      options.setInputs(parts, bytes);
    }
    options.setOutput(static_cast<std::uint8_t*>(out), bytes);
    options.setRoot(root);
    options.setTag(tag);
    ::gloo::scatter(options);
  });
}

OperationPtr GlooCommunicator::barrier() {
  if (other_) return other_->barrier();
  return start([this](std::uint32_t tag) {
    ::gloo::BarrierOptions options(context_);
    options.setTag(tag);
    ::gloo::barrier(options);
  });
}

OperationPtr GlooCommunicator::send(const void* in, std::size_t bytes, int to, int tag) {
  return other_ ? other_->send(in, bytes, to, tag) : unable("single messages");
}

OperationPtr GlooCommunicator::receive(void* out, std::size_t capacity, int from, int tag,
                                       Received* received) {
  return other_ ? other_->receive(out, capacity, from, tag, received) : unable("single messages");
}

// ---- The thread that runs jobs.

struct GlooCommunicator::Job {
  std::function<void(std::uint32_t)> work;
  std::uint32_t tag = 0;
  Status status;  // valid once state is not kPending
  std::atomic<Progress> state{Progress::kPending};
};

class GlooCommunicator::JobOperation final : public Operation {
 public:
  JobOperation(std::shared_ptr<Job> job, std::shared_ptr<Shared> shared)
      : job_(std::move(job)), shared_(std::move(shared)) {}
  // The memory of the operation may go with it: nothing may use it any more.
  ~JobOperation() override {
    if (job_->state.load() != Progress::kPending) return;
    shared_->fail(Status(Code::kCancelled, "an operation was given up before its end"));
    job_->state.wait(Progress::kPending);
  }
  Progress progress() override { return job_->state.load(std::memory_order_acquire); }
  bool moved() const override { return false; }
  const Status& status() const override {
    static const Status ok;
    return job_->state.load(std::memory_order_acquire) == Progress::kFailed ? job_->status : ok;
  }

 private:
  const std::shared_ptr<Job> job_;
  const std::shared_ptr<Shared> shared_;
};

GlooCommunicator::GlooCommunicator(GlooOptions options)
    : shared_(std::make_shared<Shared>(options)),
      me_(options.me),
      size_(static_cast<int>(options.ranks.size())),
      algorithm_(options.algorithm),
      wake_(std::move(options.wake)),
      other_(std::move(options.other)),
      context_(std::make_shared<Context>(shared_, me_, size_)) {
  shared_->watch();
  auto thread = startThread("farandole-gloo", [this] { run(); });
  notStarted_ = thread.status();
  if (thread.ok()) thread_ = std::move(thread).value();
}

GlooCommunicator::~GlooCommunicator() {
  shared_->unwatch();
  {
    const MutexLock lock(mutex_);
    over_ = true;
    changed_.notifyAll();
  }
  shared_->fail(Status(Code::kShutdown, "the communicator was closed"));
  if (thread_.joinable()) thread_.join();
}

OperationPtr GlooCommunicator::start(std::function<void(std::uint32_t)> work) {
  if (!notStarted_.ok()) return makeEnded(notStarted_);
  auto job = std::make_shared<Job>();
  job->work = std::move(work);
  // All members count alike; Gloo's slots have room for so much of it.
  job->tag = operations_++ & 0xfff;
  {
    const MutexLock lock(mutex_);
    next_ = job;
    changed_.notifyAll();
  }
  return std::make_unique<JobOperation>(job, shared_);
}

OperationPtr GlooCommunicator::unable(const char* what) const {
  return makeEnded(Status::unavailable(std::string("the gloo engine has no ") + what +
                                       ", and no other engine to leave it to"));
}

void GlooCommunicator::run() {
  const FpModeGuard mode;
  for (;;) {
    std::shared_ptr<Job> job;
    {
      const MutexLock lock(mutex_);
      while (!over_ && !next_) changed_.wait(mutex_, Deadline::never());
      job = std::exchange(next_, nullptr);
      if (!job) return;
    }
    Status status;
    {
      const MutexLock lock(shared_->mutex);
      status = shared_->failure;
    }
    if (status.ok()) {
      try {
        job->work(job->tag);
      } catch (const std::exception& error) {
        const MutexLock lock(shared_->mutex);
        // Gloo's text is about this failure, or it is the failure.
        if (shared_->failure.ok()) {
          shared_->failure = Status::internal(std::string("gloo: ") + error.what());
        }
        status = shared_->failure;
      }
    }
    job->work = nullptr;
    job->status = status;
    const bool ok = status.ok();
    if (!ok) shared_->announce();
    job->state.store(ok ? Progress::kDone : Progress::kFailed, std::memory_order_release);
    job->state.notify_all();
    if (wake_) wake_();
  }
}

}  // namespace farandole::collective::gloo::plugin
