#include "collective/shm/shm_communicator.h"

#include <algorithm>
#include <numeric>

#include "collective/local.h"
#include "collective/shm/operation.h"
#include "collective/shm/operations.h"
#include "collective/shm/point_to_point.h"

namespace farandole::collective::shm {
namespace {

class ShmCommunicator final : public Communicator {
 public:
  ShmCommunicator(machine::Neighbourhood& neighbourhood, void* area, std::vector<int> members,
                  int me)
      : context_(neighbourhood, area, std::move(members), me), pointToPoint_(context_) {}

  int member() const override { return me(); }
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
    return collect(in, out, counts, dtype, kAnyMember);
  }
  OperationPtr gather(const void* in, void* out, std::span<const std::int64_t> counts, DType dtype,
                      int root) override {
    return collect(in, out, counts, dtype, root);
  }

  OperationPtr broadcast(std::span<const Piece> pieces, DType dtype, int root) override {
    MoveLayout layout = emptyLayout();
    std::vector<Piece> inBytes(pieces.begin(), pieces.end());
    for (Piece& piece : inBytes) piece.count *= static_cast<std::int64_t>(sizeOf(dtype));
    Segments stream(inBytes, 1);
    layout.longest = layout.agreed = stream.bytes();
    layout.sources[index(root)] = true;
    if (me() == root) {
      layout.self = stream;
      layout.outgoing.push_back(std::move(stream));
    } else {
      layout.incoming[index(root)] = std::move(stream);
    }
    return makeMove(context_, std::move(layout));
  }

  OperationPtr alltoall(const void* in, std::span<const std::int64_t> sendCounts, void* out,
                        std::span<const std::int64_t> receiveCounts, DType dtype) override {
    MoveLayout layout = emptyLayout();
    layout.personal = true;
    layout.longestIsLocal = size() > 1;
    layout.outgoing.resize(index(size()));
    layout.sources.assign(index(size()), true);
    const std::byte* from = static_cast<const std::byte*>(in);
    std::byte* to = static_cast<std::byte*>(out);
    for (int member = 0; member < size(); ++member) {
      const std::size_t sent = bytesOf(sendCounts[index(member)], dtype);
      const std::size_t received = bytesOf(receiveCounts[index(member)], dtype);
      if (member == me()) {
        layout.self = Segments(from, to, std::min(sent, received));
      } else {
        layout.outgoing[index(member)] = Segments(from, nullptr, sent);
        layout.incoming[index(member)] = Segments(nullptr, to, received);
        layout.longest = std::max<std::uint64_t>({layout.longest, sent, received});
      }
      from += sent;
      to += received;
    }
    return makeMove(context_, std::move(layout));
  }

  OperationPtr scatter(const void* in, void* out, std::span<const std::int64_t> counts, DType dtype,
                       int root) override {
    MoveLayout layout = emptyLayout();
    layout.personal = true;
    layout.sources[index(root)] = true;
    layout.outgoing.resize(index(size()));
    const std::byte* from = static_cast<const std::byte*>(in);
    for (int member = 0; member < size(); ++member) {
      const std::size_t bytes = bytesOf(counts[index(member)], dtype);
      if (member == root && me() == root) layout.self = Segments(from, out, bytes);
      if (member != root && me() == root) {
        layout.outgoing[index(member)] = Segments(from, nullptr, bytes);
      }
      if (member != root) layout.longest = std::max<std::uint64_t>(layout.longest, bytes);
      if (me() == root) from += bytes;
      layout.agreed += bytes;
    }
    if (me() != root) {
      layout.incoming[index(root)] = Segments(nullptr, out, bytesOf(counts[index(me())], dtype));
    }
    return makeMove(context_, std::move(layout));
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
  int me() const { return context_.board.me(); }

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

  MoveLayout emptyLayout() const {
    MoveLayout layout;
    layout.incoming.resize(index(size()));
    layout.sources.resize(index(size()));
    return layout;
  }

  // Allgather; or gather, which only the root reads.
  OperationPtr collect(const void* in, void* out, std::span<const std::int64_t> counts, DType dtype,
                       int root) {
    MoveLayout layout = emptyLayout();
    const bool reads = root == kAnyMember || root == me();
    std::byte* to = static_cast<std::byte*>(out);
    for (int member = 0; member < size(); ++member) {
      const std::size_t bytes = bytesOf(counts[index(member)], dtype);
      const bool sends = member != root && bytes > 0;
      if (sends) layout.longest = std::max<std::uint64_t>(layout.longest, bytes);
      layout.sources[index(member)] = sends;
      if (sends && member == me()) layout.outgoing.emplace_back(in, nullptr, bytes);
      if (reads && member == me()) layout.self = Segments(in, to, bytes);
      if (reads && member != me()) layout.incoming[index(member)] = Segments(nullptr, to, bytes);
      if (reads) to += bytes;
      layout.agreed += bytes;
    }
    return makeMove(context_, std::move(layout));
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
