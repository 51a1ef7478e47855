#include "collective/mpi/communicator.h"

#include <algorithm>
#include <vector>

#include "collective/mpi/ending.h"
#include "collective/mpi/operation.h"
#include "collective/mpi/operations.h"
#include "collective/mpi/point_to_point.h"
#include "collective/mpi/process.h"

namespace farandole::collective::mpi {
namespace {

class MpiCommunicator final : public Communicator {
 public:
  MpiCommunicator(MPI_Comm comm, int nativeFrom) : messages_(context_) {
    context_.comm = comm;
    context_.nativeFrom = nativeFrom;
    context_.pointToPoint = &messages_;
    MPI_Comm_rank(comm, &context_.me);
    MPI_Comm_size(comm, &context_.size);
  }
  ~MpiCommunicator() override {
    if (!messages_.close() || !context_.failure.ok() || !MpiProcess::alive() || Ending::lost()) {
      return;
    }
    const MpiProcess::Lock lock;
    MPI_Comm_free(&context_.comm);
  }
  MpiCommunicator(const MpiCommunicator&) = delete;
  MpiCommunicator& operator=(const MpiCommunicator&) = delete;

  int member() const override { return context_.me; }
  int size() const override { return context_.size; }

  OperationPtr allreduce(std::span<const Piece> pieces, DType dtype, ReduceOp op,
                         Scale scale) override {
    if (op == ReduceOp::kAdasum && size() > 1) return makeAdasum(context_, pieces, dtype, scale);
    return makeAllreduce(context_, pieces, reductionOf(dtype, op, scale, size()));
  }
  OperationPtr allgather(const void* in, void* out, std::span<const std::int64_t> counts,
                         DType dtype) override {
    return makeAllgather(context_, {in, out, inBytes(counts, dtype), {}, 0});
  }
  OperationPtr broadcast(std::span<const Piece> pieces, DType dtype, int root) override {
    return makeBroadcast(context_, pieces, dtype, root);
  }
  OperationPtr alltoall(const void* in, std::span<const std::int64_t> sendCounts, void* out,
                        std::span<const std::int64_t> receiveCounts, DType dtype) override {
    return makeAlltoall(context_,
                        {in, out, inBytes(sendCounts, dtype), inBytes(receiveCounts, dtype), 0});
  }
  OperationPtr reducescatter(const void* in, void* out, std::span<const std::int64_t> counts,
                             DType dtype, ReduceOp op, Scale scale) override {
    return makeReduceScatter(context_, in, out, counts, reductionOf(dtype, op, scale, size()));
  }
  OperationPtr reduce(const void* in, void* out, std::int64_t count, DType dtype, ReduceOp op,
                      Scale scale, int root) override {
    return makeReduce(context_, in, out, count, reductionOf(dtype, op, scale, size()), root);
  }
  OperationPtr gather(const void* in, void* out, std::span<const std::int64_t> counts, DType dtype,
                      int root) override {
    return makeGather(context_, {in, out, inBytes(counts, dtype), {}, root});
  }
  OperationPtr scatter(const void* in, void* out, std::span<const std::int64_t> counts, DType dtype,
                       int root) override {
    return makeScatter(context_, {in, out, inBytes(counts, dtype), {}, root});
  }
  OperationPtr barrier() override { return makeBarrier(context_); }

  OperationPtr send(const void* in, std::size_t bytes, int to, int tag) override {
    return messages_.send(in, bytes, to, tag);
  }
  OperationPtr receive(void* out, std::size_t capacity, int from, int tag,
                       Received* received) override {
    return messages_.receive(out, capacity, from, tag, received);
  }

 private:
  static std::vector<std::int64_t> inBytes(std::span<const std::int64_t> counts, DType dtype) {
    std::vector<std::int64_t> bytes(counts.begin(), counts.end());
    for (std::int64_t& count : bytes) count *= static_cast<std::int64_t>(sizeOf(dtype));
    return bytes;
  }

  MpiContext context_;
  PointToPoint messages_;
};

}  // namespace

std::unique_ptr<Communicator> makeMpiCommunicator(MPI_Comm comm, int nativeFrom) {
  return std::make_unique<MpiCommunicator>(comm, nativeFrom);
}

}  // namespace farandole::collective::mpi
