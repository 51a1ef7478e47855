// GlooCommunicator: Gloo's functions block, so a thread of the communicator runs them one after
// another; operations only look whether theirs is over.
#pragma once

#include <functional>
#include <memory>
#include <thread>

#include "collective/gloo/plugin/transport.h"

namespace farandole::collective::gloo::plugin {

class GlooCommunicator final : public Communicator {
 public:
  explicit GlooCommunicator(GlooOptions options);
  // Ends what is in flight.
  ~GlooCommunicator() override;

  int member() const override { return me_; }
  int size() const override { return size_; }

  OperationPtr allreduce(std::span<const Piece> pieces, DType dtype, ReduceOp op,
                         Scale scale) override;
  OperationPtr allgather(const void* in, void* out, std::span<const std::int64_t> counts,
                         DType dtype) override;
  OperationPtr broadcast(std::span<const Piece> pieces, DType dtype, int root) override;
  OperationPtr alltoall(const void* in, std::span<const std::int64_t> sendCounts, void* out,
                        std::span<const std::int64_t> receiveCounts, DType dtype) override;
  OperationPtr reducescatter(const void* in, void* out, std::span<const std::int64_t> counts,
                             DType dtype, ReduceOp op, Scale scale) override;
  OperationPtr reduce(const void* in, void* out, std::int64_t count, DType dtype, ReduceOp op,
                      Scale scale, int root) override;
  OperationPtr gather(const void* in, void* out, std::span<const std::int64_t> counts, DType dtype,
                      int root) override;
  OperationPtr scatter(const void* in, void* out, std::span<const std::int64_t> counts, DType dtype,
                       int root) override;
  OperationPtr barrier() override;
  OperationPtr send(const void* in, std::size_t bytes, int to, int tag) override;
  OperationPtr receive(void* out, std::size_t capacity, int from, int tag,
                       Received* received) override;

 private:
  struct Job;
  class JobOperation;

  // Runs it on the thread. What it throws becomes the status. tag: for Gloo.
  OperationPtr start(std::function<void(std::uint32_t tag)> work);
  OperationPtr unable(const char* what) const;
  void run();

  const std::shared_ptr<Shared> shared_;
  const int me_;
  const int size_;
  const GlooAlgorithm algorithm_;
  const std::function<void()> wake_;
  const std::unique_ptr<Communicator> other_;
  std::shared_ptr<Context> context_;
  std::uint32_t operations_ = 0;

  Mutex mutex_;
  Condition changed_;
  bool over_ GUARDED_BY(mutex_) = false;
  std::shared_ptr<Job> next_ GUARDED_BY(mutex_);
  Status notStarted_;  // why there is no thread; set by the constructor
  std::thread thread_;
};

}  // namespace farandole::collective::gloo::plugin
