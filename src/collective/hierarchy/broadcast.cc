#include "collective/hierarchy/slices.h"
#include "collective/hierarchy/stages.h"

namespace farandole::collective::hierarchy {
namespace {

// First: on the root's machine everybody gets the chunk. Travel: its carriers send each its slice
// from where it has just been put. Last: on the other machines the slices are spread.
class SlicedBroadcast final : public Pipeline {
 public:
  SlicedBroadcast(HierarchyContext& shared, std::span<const Piece> pieces, DType dtype,
                  const Cut& cut, int root)
      : Pipeline(shared, cut),
        segments_(pieces, sizeOf(dtype)),
        slices_(segments_, cut),
        dtype_(dtype),
        root_(root),
        home_(machines().machineOf(root) == machines().mine()),
        slot_(ringSlot(static_cast<std::size_t>(slices_.longestSlice()) * sizeOf(dtype))) {
    if (home_) return;
    mine_ = buffer(Buffer::kSlices, kRing * slot_);
    if (slices_.mayNeedPlacing()) {
      placed_ =
          buffer(Buffer::kPlaced, static_cast<std::size_t>(slices_.longestChunk()) * sizeOf(dtype));
    }
  }

 protected:
  OperationPtr first(std::int64_t chunk) override {
    if (!home_ || slices_.count(chunk) == 0) return nullptr;
    const bool mine = machines().me() == root_;
    std::vector<Piece> pieces;
    segments_.forEach(
        slices_.begin(chunk), slices_.begin(chunk + 1),
        [&](std::size_t piece, std::int64_t offset, std::int64_t count, std::int64_t) {
          std::byte* const out = segments_.out(piece, offset);
          pieces.push_back({mine ? segments_.in(piece, offset) : out, out, count});
        });
    return local().broadcast(pieces, dtype_, machines().localOf(root_));
  }

  OperationPtr travel(std::int64_t chunk) override {
    const int mine = machines().local();
    if (slices_.count(chunk, mine) == 0) return nullptr;
    // Engines cut messages at the pieces' borders, so these are the same wherever a slice is.
    const std::vector<Piece> pieces = home_ ? slices_.outputs(chunk, mine, nullptr)
                                            : slices_.consecutive(chunk, mine, slice(chunk));
    return context().between->broadcast(pieces, dtype_, machines().machineOf(root_));
  }

  OperationPtr last(std::int64_t chunk) override {
    if (home_) return nullptr;
    return slices_.spread(context(), chunk, slice(chunk), placed_, dtype_);
  }

  void ended(std::int64_t chunk) override {
    if (!home_ && slices_.needsPlacing(chunk)) slices_.place(chunk, placed_);
  }

 private:
  std::byte* slice(std::int64_t chunk) const { return ring(mine_, slot_, chunk); }

  const Segments segments_;
  const Slices slices_;
  const DType dtype_;
  const int root_;
  const bool home_;  // on the root's machine
  const std::size_t slot_;
  std::byte* mine_ = nullptr;
  std::byte* placed_ = nullptr;
};

// Everybody of the machine, then the first carriers, then everybody knows of it.
class HierarchyBarrier final : public Pipeline {
 public:
  explicit HierarchyBarrier(HierarchyContext& shared) : Pipeline(shared, Cut{}) {}

 protected:
  OperationPtr first(std::int64_t) override { return local().barrier(); }
  OperationPtr travel(std::int64_t) override {
    return machines().local() == 0 ? context().between->barrier() : nullptr;
  }
  OperationPtr last(std::int64_t) override { return local().barrier(); }
};

}  // namespace

OperationPtr makeSlicedBroadcast(HierarchyContext& context, std::span<const Piece> pieces,
                                 DType dtype, int root) {
  std::size_t elements = 0;
  for (const Piece& piece : pieces) elements += static_cast<std::size_t>(piece.count);
  const Cut cut = cutOf(context, elements * sizeOf(dtype));
  return std::make_unique<SlicedBroadcast>(context, pieces, dtype, cut, root);
}

OperationPtr makeHierarchyBarrier(HierarchyContext& context) {
  return std::make_unique<HierarchyBarrier>(context);
}

}  // namespace farandole::collective::hierarchy
