#include "collective/hierarchy/slices.h"
#include "collective/hierarchy/stages.h"

namespace farandole::collective::hierarchy {
namespace {

// Allreduce and reduce. First: the machine's members reduce-scatter the chunk to their carriers.
// Travel: each carrier reduces its slice with those of the other machines. Last: the slices are
// gathered by everybody, or by the root.
class SlicedReduction final : public Pipeline {
 public:
  SlicedReduction(HierarchyContext& shared, std::span<const Piece> pieces, const Work& work,
                  const Cut& cut, int root)
      : Pipeline(shared, cut),
        segments_(pieces, sizeOf(work.outside)),
        slices_(segments_, cut),
        work_(work),
        root_(root),
        slot_(ringSlot(static_cast<std::size_t>(slices_.longestSlice()) * sizeOf(work.inside))) {
    const auto chunk = static_cast<std::size_t>(slices_.longestChunk());
    mine_ = buffer(Buffer::kSlices, kRing * slot_);
    if (root_ != kAnyMember) answers_ = buffer(Buffer::kAnswers, kRing * slot_);
    if (work_.converts() || pieces.size() > 1) {
      packed_ = buffer(Buffer::kPacked, chunk * sizeOf(work_.inside));
    }
    if (root_ == kAnyMember && slices_.mayNeedPlacing()) {
      placed_ = buffer(Buffer::kPlaced, chunk * sizeOf(work_.outside));
    }
  }

 protected:
  OperationPtr first(std::int64_t chunk) override {
    if (slices_.count(chunk) == 0) return nullptr;
    const std::byte* in = work_.converts() ? nullptr : slices_.in(chunk);
    if (in == nullptr) in = pack(chunk);
    return local().reducescatter(in, slice(chunk), slices_.counts(chunk, local().size()),
                                 work_.inside, work_.op, work_.before);
  }

  OperationPtr travel(std::int64_t chunk) override {
    const std::int64_t count = mine(chunk);
    if (count == 0) return nullptr;
    if (root_ != kAnyMember) {
      return context().between->reduce(slice(chunk), answer(chunk), count, work_.inside, work_.op,
                                       {}, machines().machineOf(root_));
    }
    const Piece piece{slice(chunk), slice(chunk), count};
    return context().between->allreduce(std::span(&piece, 1), work_.inside, work_.op, {});
  }

  void travelled(std::int64_t chunk) override {
    if (mine(chunk) > 0 && receives()) work_.leave(answer(chunk), mine(chunk));
  }

  OperationPtr last(std::int64_t chunk) override {
    if (slices_.count(chunk) == 0 || !receives()) return nullptr;
    if (root_ == kAnyMember) {
      return slices_.spread(context(), chunk, slice(chunk), placed_, work_.outside);
    }
    std::byte* const out = machines().me() == root_ ? slices_.out(chunk) : nullptr;
    return local().gather(answer(chunk), out, slices_.counts(chunk, local().size()), work_.outside,
                          machines().localOf(root_));
  }

  void ended(std::int64_t chunk) override {
    if (root_ == kAnyMember && slices_.needsPlacing(chunk)) slices_.place(chunk, placed_);
  }

 private:
  bool receives() const {
    return root_ == kAnyMember || machines().machineOf(root_) == machines().mine();
  }
  // Elements of the slice that this member carries.
  std::int64_t mine(std::int64_t chunk) const { return slices_.count(chunk, machines().local()); }
  std::byte* slice(std::int64_t chunk) const { return ring(mine_, slot_, chunk); }
  std::byte* answer(std::int64_t chunk) const {
    return root_ == kAnyMember ? slice(chunk) : ring(answers_, slot_, chunk);
  }

  const std::byte* pack(std::int64_t chunk) {
    segments_.forEach(
        slices_.begin(chunk), slices_.begin(chunk + 1),
        [&](std::size_t piece, std::int64_t offset, std::int64_t count, std::int64_t done) {
          work_.enter(packed_ + static_cast<std::size_t>(done) * sizeOf(work_.inside),
                      segments_.in(piece, offset), count);
        });
    return packed_;
  }

  const Segments segments_;
  const Slices slices_;
  const Work work_;
  const int root_;
  const std::size_t slot_;
  std::byte* mine_ = nullptr;     // the ring of slices
  std::byte* answers_ = nullptr;  // reduce: the ring of results
  std::byte* packed_ = nullptr;
  std::byte* placed_ = nullptr;
};

}  // namespace

OperationPtr makeSlicedReduction(HierarchyContext& context, std::span<const Piece> pieces,
                                 const Work& work, int root) {
  std::size_t elements = 0;
  for (const Piece& piece : pieces) elements += static_cast<std::size_t>(piece.count);
  const Cut cut = cutOf(context, elements * sizeOf(work.inside));
  return std::make_unique<SlicedReduction>(context, pieces, work, cut, root);
}

}  // namespace farandole::collective::hierarchy
