#include "collective/link/link_communicator.h"

#include <algorithm>
#include <utility>

#include "collective/link/choose.h"
#include "collective/link/context.h"
#include "collective/link/operations.h"
#include "collective/link/point_to_point.h"
#include "collective/local.h"
#include "collective/segments.h"

namespace farandole::collective::link {

namespace {

std::size_t index(int member) { return static_cast<std::size_t>(member); }
std::size_t bytesOf(std::int64_t count, DType dtype) {
  return static_cast<std::size_t>(count) * sizeOf(dtype);
}
// Such memory is only read when it is sent.
std::byte* readable(const void* memory) {
  return const_cast<std::byte*>(static_cast<const std::byte*>(memory));
}

// Nothing travels.
class Local final : public LocalReduction<LinkOperation> {
 public:
  Local(std::span<const Piece> pieces, const Reduction& reduction, Context& shared)
      : LocalReduction(pieces, reduction, shared, 0) {
    mayBeDropped(true);
  }
};

class LinkCommunicator final : public Communicator {
 public:
  explicit LinkCommunicator(LinkOptions options)
      : context_(std::move(options)), pointToPoint_(context_) {}

  int member() const override { return me(); }
  int size() const override { return context_.size(); }

  OperationPtr allreduce(std::span<const Piece> pieces, DType dtype, ReduceOp op,
                         Scale scale) override {
    const Reduction reduction = reductionOf(dtype, op, scale, size());
    if (size() == 1) return local(pieces, reduction);
    if (op == ReduceOp::kAdasum) return makeAdasum(context_, pieces, dtype, scale);
    Elements elements(Segments(pieces, sizeOf(dtype)), reduction, context_.options.wire);
    const std::size_t bytes = wireBytes(elements);
    const Algorithm algorithm = chooseAllreduce(size(), bytes);
    if (algorithm != Algorithm::kSlices) {
      return makeSmallAllreduce(context_, std::move(elements), algorithm);
    }
    SliceLayout layout;
    layout.cuts = evenCuts(elements.segments(), size());
    layout.chunkBytes = chunkBytes(size(), bytes / index(size()));
    return makeSlices(context_, std::move(elements), std::move(layout));
  }

  OperationPtr allgather(const void* in, void* out, std::span<const std::int64_t> counts,
                         DType dtype) override {
    std::vector<std::size_t> bytes;
    std::size_t total = 0;
    for (const std::int64_t count : counts) {
      bytes.push_back(bytesOf(count, dtype));
      total += bytes.back();
    }
    const Algorithm algorithm = chooseAllgather(size(), total);
    if (algorithm == Algorithm::kBruck) {
      return makeSmallAllgather(context_, in, out, bytes, algorithm);
    }
    return collect(in, out, bytes, kAnyMember);
  }
  OperationPtr gather(const void* in, void* out, std::span<const std::int64_t> counts, DType dtype,
                      int root) override {
    std::vector<std::size_t> bytes;
    for (const std::int64_t count : counts) bytes.push_back(bytesOf(count, dtype));
    return collect(in, out, bytes, root);
  }

  OperationPtr broadcast(std::span<const Piece> pieces, DType dtype, int root) override {
    std::vector<Piece> inBytes(pieces.begin(), pieces.end());
    for (Piece& piece : inBytes) piece.count *= static_cast<std::int64_t>(sizeOf(dtype));
    if (size() == 1) return local(inBytes, kPlainCopy);
    Segments segments(inBytes, 1);
    const Algorithm algorithm = chooseBroadcast(size(), segments.bytes());
    return makeBroadcast(context_, std::move(segments), root, algorithm);
  }

  OperationPtr alltoall(const void* in, std::span<const std::int64_t> sendCounts, void* out,
                        std::span<const std::int64_t> receiveCounts, DType dtype) override {
    MoveLayout layout;
    std::byte* from = readable(in);
    std::byte* to = static_cast<std::byte*>(out);
    for (int member = 0; member < size(); ++member) {
      const std::size_t sent = bytesOf(sendCounts[index(member)], dtype);
      const std::size_t received = bytesOf(receiveCounts[index(member)], dtype);
      if (member == me()) {
        layout.from = from;
        layout.to = to;
        layout.bytes = std::min(sent, received);
      } else {
        layout.outgoing.push_back({member, from, sent});
        layout.incoming.push_back({member, to, received});
      }
      from += sent;
      to += received;
    }
    return makeMove(context_, std::move(layout));
  }

  OperationPtr scatter(const void* in, void* out, std::span<const std::int64_t> counts, DType dtype,
                       int root) override {
    MoveLayout layout;
    const std::size_t mine = bytesOf(counts[index(me())], dtype);
    if (me() != root) {
      layout.incoming.push_back({root, static_cast<std::byte*>(out), mine});
      return makeMove(context_, std::move(layout));
    }
    std::byte* from = readable(in);
    for (int member = 0; member < size(); ++member) {
      const std::size_t bytes = bytesOf(counts[index(member)], dtype);
      if (member != root) layout.outgoing.push_back({member, from, bytes});
      if (member == root) layout.from = from;
      from += bytes;
    }
    layout.to = static_cast<std::byte*>(out);
    layout.bytes = mine;
    return makeMove(context_, std::move(layout));
  }

  OperationPtr reducescatter(const void* in, void* out, std::span<const std::int64_t> counts,
                             DType dtype, ReduceOp op, Scale scale) override {
    const Reduction reduction = reductionOf(dtype, op, scale, size());
    if (size() == 1) return local(in, out, counts[0], reduction);
    SliceLayout layout;
    std::int64_t total = 0;
    layout.cuts.push_back(total);
    for (const std::int64_t count : counts) layout.cuts.push_back(total += count);
    return reduceTo(in, total, reduction, std::move(layout), out);
  }

  OperationPtr reduce(const void* in, void* out, std::int64_t count, DType dtype, ReduceOp op,
                      Scale scale, int root) override {
    const Reduction reduction = reductionOf(dtype, op, scale, size());
    if (size() == 1) return local(in, out, count, reduction);
    SliceLayout layout;
    if (chooseReduce(size(), bytesOf(count, dtype)) == Algorithm::kRoot) {
      for (int member = 0; member <= size(); ++member) {
        layout.cuts.push_back(member <= root ? 0 : count);
      }
      return reduceTo(in, count, reduction, std::move(layout), me() == root ? out : nullptr);
    }
    const Piece piece{in, me() == root ? out : nullptr, count};
    Elements elements(Segments(std::span(&piece, 1), sizeOf(dtype)), reduction,
                      context_.options.wire);
    layout.cuts = evenCuts(elements.segments(), size());
    layout.chunkBytes = chunkBytes(size(), wireBytes(elements) / index(size()));
    layout.reader = root;
    return makeSlices(context_, std::move(elements), std::move(layout));
  }

  OperationPtr barrier() override {
    if (size() == 1) return local({}, kPlainCopy);
    return makeBarrier(context_, chooseBarrier(size()));
  }

  OperationPtr send(const void* in, std::size_t bytes, int to, int tag) override {
    return pointToPoint_.send(in, bytes, to, tag);
  }
  OperationPtr receive(void* out, std::size_t capacity, int from, int tag,
                       Received* received) override {
    return pointToPoint_.receive(out, capacity, from, tag, received);
  }

 private:
  int me() const { return context_.me(); }

  static std::size_t wireBytes(const Elements& elements) {
    return static_cast<std::size_t>(elements.segments().total()) * elements.wireBytes();
  }

  OperationPtr local(std::span<const Piece> pieces, const Reduction& reduction) {
    return std::make_unique<Local>(pieces, reduction, context_);
  }
  OperationPtr local(const void* in, void* out, std::int64_t count, const Reduction& reduction) {
    const Piece piece{in, out, count};
    return local(std::span(&piece, 1), reduction);
  }

  // Every member's slice goes to itself only.
  OperationPtr reduceTo(const void* in, std::int64_t count, const Reduction& reduction,
                        SliceLayout layout, void* out) {
    // As if every slice had its place where its owner's output is.
    const std::int64_t begin = layout.cuts[index(me())];
    const std::int64_t mine = layout.cuts[index(me()) + 1] - begin;
    const std::size_t element = sizeOf(reduction.dtype);
    std::byte* const from = readable(in);
    std::byte* const own = from + static_cast<std::size_t>(begin) * element;
    const std::size_t bytes = static_cast<std::size_t>(mine) * element;
    if (out != own && overlap(in, static_cast<std::size_t>(count) * element, out, bytes)) {
      layout.aside.resize(bytes);
      layout.target = std::exchange(out, layout.aside.data());
    }
    const Piece pieces[] = {
        {from, nullptr, begin}, {own, out, mine}, {own + bytes, nullptr, count - begin - mine}};
    Elements elements(Segments(pieces, element), reduction, context_.options.wire);
    std::int64_t longest = 0;
    for (int member = 0; member < size(); ++member) {
      longest = std::max(longest, layout.cuts[index(member) + 1] - layout.cuts[index(member)]);
    }
    layout.chunkBytes =
        chunkBytes(size(), static_cast<std::size_t>(longest) * elements.wireBytes());
    layout.reader = SliceLayout::kOwner;
    return makeSlices(context_, std::move(elements), std::move(layout));
  }

  // Allgather; or gather, which only the root reads.
  OperationPtr collect(const void* in, void* out, std::span<const std::size_t> bytes, int root) {
    MoveLayout layout;
    const bool reads = root == kAnyMember || root == me();
    std::byte* to = static_cast<std::byte*>(out);
    for (int member = 0; member < size(); ++member) {
      const bool readBy = root == kAnyMember || root == member;
      if (member != me() && readBy) {
        layout.outgoing.push_back({member, readable(in), bytes[index(me())]});
      }
      if (!reads) continue;
      if (member == me()) {
        layout.from = readable(in);
        layout.to = to;
        layout.bytes = bytes[index(member)];
      } else {
        layout.incoming.push_back({member, to, bytes[index(member)]});
      }
      to += bytes[index(member)];
    }
    return makeMove(context_, std::move(layout));
  }

  Context context_;
  PointToPoint pointToPoint_;
};

}  // namespace

std::unique_ptr<Communicator> makeLinkCommunicator(LinkOptions options) {
  return std::make_unique<LinkCommunicator>(std::move(options));
}

}  // namespace farandole::collective::link
