#include "collective/hierarchy/hierarchy.h"

#include <utility>

#include "collective/hierarchy/pipeline.h"
#include "collective/hierarchy/stages.h"

namespace farandole::collective::hierarchy {
namespace {

// A collective of another communicator; its failure is the hierarchy's.
class Delegated final : public Operation {
 public:
  Delegated(HierarchyContext& context, OperationPtr operation)
      : context_(context), operation_(std::move(operation)) {}
  Progress progress() override {
    const Progress result = operation_->progress();
    if (result == Progress::kFailed && context_.failure.ok()) {
      context_.failure = operation_->status();
    }
    return result;
  }
  bool moved() const override { return operation_->moved(); }
  Duration nap() const override { return operation_->nap(); }
  const Status& status() const override { return operation_->status(); }

 private:
  HierarchyContext& context_;
  const OperationPtr operation_;
};

class Hierarchy final : public Communicator {
 public:
  explicit Hierarchy(HierarchyParts parts) : context_(std::move(parts)) {}

  int member() const override { return context_.machines.me(); }
  int size() const override { return context_.machines.members(); }
  Statistics statistics() const override {
    return context_.local ? context_.local->statistics() : Statistics{};
  }

  OperationPtr allreduce(std::span<const Piece> pieces, DType dtype, ReduceOp op,
                         Scale scale) override {
    if (!context_.failure.ok()) return failed();
    if (op == ReduceOp::kAdasum) {
      return delegated(context_.flat->allreduce(pieces, dtype, op, scale));
    }
    return makeSlicedReduction(context_, pieces, Work(dtype, op, scale, size()), kAnyMember);
  }
  OperationPtr reduce(const void* in, void* out, std::int64_t count, DType dtype, ReduceOp op,
                      Scale scale, int root) override {
    if (!context_.failure.ok()) return failed();
    if (op == ReduceOp::kAdasum) {
      return delegated(context_.flat->reduce(in, out, count, dtype, op, scale, root));
    }
    const Piece piece{in, out, count};
    return makeSlicedReduction(context_, std::span(&piece, 1), Work(dtype, op, scale, size()),
                               root);
  }
  OperationPtr reducescatter(const void* in, void* out, std::span<const std::int64_t> counts,
                             DType dtype, ReduceOp op, Scale scale) override {
    if (!context_.failure.ok()) return failed();
    if (op == ReduceOp::kAdasum) {
      return delegated(context_.flat->reducescatter(in, out, counts, dtype, op, scale));
    }
    return makeSlicedReduceScatter(context_, in, out, counts, Work(dtype, op, scale, size()));
  }
  OperationPtr allgather(const void* in, void* out, std::span<const std::int64_t> counts,
                         DType dtype) override {
    if (!context_.failure.ok()) return failed();
    return makeSlicedAllgather(context_, in, out, counts, dtype);
  }
  OperationPtr broadcast(std::span<const Piece> pieces, DType dtype, int root) override {
    if (!context_.failure.ok()) return failed();
    return makeSlicedBroadcast(context_, pieces, dtype, root);
  }
  OperationPtr barrier() override {
    if (!context_.failure.ok()) return failed();
    return makeHierarchyBarrier(context_);
  }

  OperationPtr alltoall(const void* in, std::span<const std::int64_t> sendCounts, void* out,
                        std::span<const std::int64_t> receiveCounts, DType dtype) override {
    if (!context_.failure.ok()) return failed();
    return delegated(context_.flat->alltoall(in, sendCounts, out, receiveCounts, dtype));
  }
  OperationPtr gather(const void* in, void* out, std::span<const std::int64_t> counts, DType dtype,
                      int root) override {
    if (!context_.failure.ok()) return failed();
    return delegated(context_.flat->gather(in, out, counts, dtype, root));
  }
  OperationPtr scatter(const void* in, void* out, std::span<const std::int64_t> counts, DType dtype,
                       int root) override {
    if (!context_.failure.ok()) return failed();
    return delegated(context_.flat->scatter(in, out, counts, dtype, root));
  }
  // Not delegated(): a message larger than its receiver's buffer fails alone.
  OperationPtr send(const void* in, std::size_t bytes, int to, int tag) override {
    if (!context_.failure.ok()) return failed();
    return context_.flat->send(in, bytes, to, tag);
  }
  OperationPtr receive(void* out, std::size_t capacity, int from, int tag,
                       Received* received) override {
    if (!context_.failure.ok()) return failed();
    return context_.flat->receive(out, capacity, from, tag, received);
  }

 private:
  OperationPtr failed() const { return makeEnded(context_.failure); }
  OperationPtr delegated(OperationPtr operation) {
    return std::make_unique<Delegated>(context_, std::move(operation));
  }

  HierarchyContext context_;
};

}  // namespace

std::unique_ptr<Communicator> makeHierarchy(HierarchyParts parts) {
  const Machines machines(parts.machineOf, parts.me);
  // One machine, or one member on each: one of the parts is all there is to it.
  if (machines.valid() && machines.count() == 1 && parts.local) return std::move(parts.local);
  if (machines.valid() && machines.count() == machines.members() && parts.flat) {
    return std::move(parts.flat);
  }
  return std::make_unique<Hierarchy>(std::move(parts));
}

}  // namespace farandole::collective::hierarchy
