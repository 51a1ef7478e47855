#include "collective/shm/shm_communicator.h"

#include <algorithm>
#include <numeric>

#include "collective/local.h"
#include "collective/shm/adasum.h"
#include "collective/shm/allreduce.h"
#include "collective/shm/move.h"
#include "collective/shm/operation.h"
#include "collective/shm/point_to_point.h"
#include "collective/shm/reduce_scatter.h"

namespace farandole::collective::shm {
namespace {

class ShmCommunicator final : public Communicator {
 public:
  ShmCommunicator(machine::Neighbourhood& neighbourhood, void* area, std::vector<int> members,
                  int me)
      : context_(neighbourhood, area, std::move(members), me), pointToPoint_(context_) {}

  int rank() const override { return context_.board.me(); }
  int size() const override { return context_.board.size(); }

  OperationPtr allreduce(std::span<const Piece> pieces, DType dtype, ReduceOp op,
                         Scale scale) override {
    const Reduction reduction = reductionOf(dtype, op, scale, size());
    if (size() == 1) return local(pieces, reduction);
    if (op == ReduceOp::kAdasum) return makeAdasum(context_, pieces, dtype, scale);
    return makeAllreduce(context_, pieces, reduction);
  }

  OperationPtr allgather(const void* in, void* out, std::span<const std::int64_t> counts,
                         DType dtype) override {
    return collect(in, out, counts, dtype, kAnyRank);
  }
  OperationPtr gather(const void* in, void* out, std::span<const std::int64_t> counts, DType dtype,
                      int root) override {
    return collect(in, out, counts, dtype, root);
  }

  OperationPtr broadcast(std::span<const Piece> pieces, DType dtype, int root) override {
    MovePlan plan = emptyPlan();
    std::vector<Piece> inBytes(pieces.begin(), pieces.end());
    for (Piece& piece : inBytes) piece.count *= static_cast<std::int64_t>(sizeOf(dtype));
    Segments stream(inBytes, 1);
    plan.longest = plan.agreed = stream.bytes();
    plan.sources[index(root)] = true;
    if (rank() == root) {
      plan.self = stream;
      plan.outgoing.push_back(std::move(stream));
    } else {
      plan.incoming[index(root)] = std::move(stream);
    }
    return makeMove(context_, std::move(plan));
  }

  OperationPtr alltoall(const void* in, std::span<const std::int64_t> sendCounts, void* out,
                        std::span<const std::int64_t> receiveCounts, DType dtype) override {
    MovePlan plan = emptyPlan();
    plan.personal = true;
    plan.longestIsLocal = size() > 1;
    plan.outgoing.resize(index(size()));
    plan.sources.assign(index(size()), true);
    const std::byte* from = static_cast<const std::byte*>(in);
    std::byte* to = static_cast<std::byte*>(out);
    for (int member = 0; member < size(); ++member) {
      const std::size_t sent = bytesOf(sendCounts[index(member)], dtype);
      const std::size_t received = bytesOf(receiveCounts[index(member)], dtype);
      if (member == rank()) {
        plan.self = Segments(from, to, std::min(sent, received));
      } else {
        plan.outgoing[index(member)] = Segments(from, nullptr, sent);
        plan.incoming[index(member)] = Segments(nullptr, to, received);
        plan.longest = std::max<std::uint64_t>({plan.longest, sent, received});
      }
      from += sent;
      to += received;
    }
    return makeMove(context_, std::move(plan));
  }

  OperationPtr scatter(const void* in, void* out, std::span<const std::int64_t> counts, DType dtype,
                       int root) override {
    MovePlan plan = emptyPlan();
    plan.personal = true;
    plan.sources[index(root)] = true;
    plan.outgoing.resize(index(size()));
    const std::byte* from = static_cast<const std::byte*>(in);
    for (int member = 0; member < size(); ++member) {
      const std::size_t bytes = bytesOf(counts[index(member)], dtype);
      if (member == root && rank() == root) plan.self = Segments(from, out, bytes);
      if (member != root && rank() == root) {
        plan.outgoing[index(member)] = Segments(from, nullptr, bytes);
      }
      if (member != root) plan.longest = std::max<std::uint64_t>(plan.longest, bytes);
      if (rank() == root) from += bytes;
      plan.agreed += bytes;
    }
    if (rank() != root) {
      plan.incoming[index(root)] = Segments(nullptr, out, bytesOf(counts[index(rank())], dtype));
    }
    return makeMove(context_, std::move(plan));
  }

  OperationPtr reducescatter(const void* in, void* out, std::span<const std::int64_t> counts,
                             DType dtype, ReduceOp op, Scale scale) override {
    const Reduction reduction = reductionOf(dtype, op, scale, size());
    if (size() == 1) return local(in, out, counts[0], reduction);
    return makeReduceScatter(context_, in, out, counts, reduction);
  }

  OperationPtr reduce(const void* in, void* out, std::int64_t count, DType dtype, ReduceOp op,
                      Scale scale, int root) override {
    const Reduction reduction = reductionOf(dtype, op, scale, size());
    if (size() == 1) return local(in, out, count, reduction);
    std::vector<std::int64_t> counts(index(size()), 0);
    counts[index(root)] = count;
    return makeReduceScatter(context_, in, out, counts, reduction);
  }

  OperationPtr barrier() override {
    if (size() == 1) return local({}, kPlainCopy);
    return makeBarrier(context_);
  }

  OperationPtr send(const void* in, std::size_t bytes, int to, int tag) override {
    return pointToPoint_.send(in, bytes, to, tag);
  }
  OperationPtr receive(void* out, std::size_t capacity, int from, int tag,
                       Received* received) override {
    return pointToPoint_.receive(out, capacity, from, tag, received);
  }

  Statistics statistics() const override { return {context_.zeroCopyBytes}; }

 private:
  static std::size_t index(int member) { return static_cast<std::size_t>(member); }
  static std::size_t bytesOf(std::int64_t count, DType dtype) {
    return static_cast<std::size_t>(count) * sizeOf(dtype);
  }

  OperationPtr local(std::span<const Piece> pieces, const Reduction& reduction) {
    return std::make_unique<LocalReduction<ShmOperation>>(pieces, reduction, context_);
  }
  OperationPtr local(const void* in, void* out, std::int64_t count, const Reduction& reduction) {
    const Piece piece{in, out, count};
    return local(std::span(&piece, 1), reduction);
  }

  MovePlan emptyPlan() const {
    MovePlan plan;
    plan.incoming.resize(index(size()));
    plan.sources.resize(index(size()));
    return plan;
  }

  // Allgather; or gather, which only the root reads.
  OperationPtr collect(const void* in, void* out, std::span<const std::int64_t> counts, DType dtype,
                       int root) {
    MovePlan plan = emptyPlan();
    const bool reads = root == kAnyRank || root == rank();
    std::byte* to = static_cast<std::byte*>(out);
    for (int member = 0; member < size(); ++member) {
      const std::size_t bytes = bytesOf(counts[index(member)], dtype);
      const bool sends = member != root && bytes > 0;
      if (sends) plan.longest = std::max<std::uint64_t>(plan.longest, bytes);
      plan.sources[index(member)] = sends;
      if (sends && member == rank()) plan.outgoing.emplace_back(in, nullptr, bytes);
      if (reads && member == rank()) plan.self = Segments(in, to, bytes);
      if (reads && member != rank()) plan.incoming[index(member)] = Segments(nullptr, to, bytes);
      if (reads) to += bytes;
      plan.agreed += bytes;
    }
    return makeMove(context_, std::move(plan));
  }

  ShmContext context_;
  PointToPoint pointToPoint_;
};

}  // namespace

std::unique_ptr<Communicator> makeShmCommunicator(machine::Neighbourhood& neighbourhood, void* area,
                                                  std::vector<int> members, int me) {
  return std::make_unique<ShmCommunicator>(neighbourhood, area, std::move(members), me);
}

}  // namespace farandole::collective::shm
