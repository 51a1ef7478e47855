#include <vector>

#include "base/reduce.h"
#include "collective/hierarchy/blocks.h"
#include "collective/hierarchy/stages.h"
#include "collective/segments.h"

namespace farandole::collective::hierarchy {
namespace {

// First: the machine's block of the chunk comes to its carriers, to each its slice. Travel:
// carriers gather their slices of all machines' blocks. Last: everybody takes the slices of all
// carriers and puts their runs where they belong.
class SlicedAllgather final : public Pipeline {
 public:
  SlicedAllgather(HierarchyContext& shared, const void* in, void* out,
                  std::span<const std::int64_t> counts, DType dtype, const Cut& cut)
      : Pipeline(shared, cut),
        in_(static_cast<const std::byte*>(in)),
        out_(static_cast<std::byte*>(out)),
        blocks_(machines(), counts, cut),
        dtype_(dtype),
        me_(machines().local()) {
    sliceSlot_ = ringSlot(bytes(blocks_.slice(machines().mine(), 0, 0)));
    answerSlot_ = ringSlot(bytes(blocks_.across(0, 0)));
    slices_ = buffer(Buffer::kSlices, kRing * sliceSlot_);
    answers_ = buffer(Buffer::kAnswers, kRing * answerSlot_);
    if (blocks_.slices() > 1) placed_ = buffer(Buffer::kPlaced, bytes(blocks_.total(0)));
    // Later chunks are read from the input after earlier ones are written: an input inside the
    // output must be saved, unless it is the very place of this member's part.
    const std::int64_t mine = counts[static_cast<std::size_t>(machines().me())];
    const std::byte* own = out_ + bytes(blocks_.start(machines().me()));
    const std::int64_t all = blocks_.start(machines().members() - 1) + counts.back();
    if (in_ != own && overlap(in_, bytes(mine), out_, bytes(all))) {
      saved_.assign(in_, in_ + bytes(mine));
      in_ = saved_.data();
    }
  }

 protected:
  OperationPtr first(std::int64_t chunk) override {
    if (blocks_.total(chunk) == 0) return nullptr;
    const std::byte* const from = in_ + bytes(blocks_.begin(machines().me(), chunk));
    std::byte* const to = ring(slices_, sliceSlot_, chunk);
    if (blocks_.slices() == 1) {
      return local().gather(from, to, blocks_.perOwner(chunk, 0), dtype_, 0);
    }
    return local().alltoall(from, blocks_.mineBySlice(chunk), to, blocks_.perOwner(chunk, me_),
                            dtype_);
  }

  OperationPtr travel(std::int64_t chunk) override {
    if (blocks_.across(chunk, me_) == 0) return nullptr;
    return context().between->allgather(ring(slices_, sliceSlot_, chunk),
                                        ring(answers_, answerSlot_, chunk),
                                        blocks_.perMachine(chunk, me_), dtype_);
  }

  OperationPtr last(std::int64_t chunk) override {
    if (blocks_.total(chunk) == 0) return nullptr;
    const std::byte* from = ring(answers_, answerSlot_, chunk);
    if (blocks_.slices() > 1) {
      return local().allgather(from, placed_, blocks_.perCarrier(chunk), dtype_);
    }
    std::vector<Piece> pieces;
    blocks_.forEachRun(chunk, 0, [&](int member, std::int64_t offset, std::int64_t count) {
      pieces.push_back({from, placeOf(member, offset), count});
      from += bytes(count);
    });
    return local().broadcast(pieces, dtype_, 0);
  }

  void ended(std::int64_t chunk) override {
    const std::byte* from = placed_;
    for (int slice = 0; slice < blocks_.slices() && placed_ != nullptr; ++slice) {
      blocks_.forEachRun(chunk, slice, [&](int member, std::int64_t offset, std::int64_t count) {
        copy(placeOf(member, offset), from, bytes(count), Store::kCached);
        from += bytes(count);
      });
    }
  }

 private:
  std::size_t bytes(std::int64_t count) const {
    return static_cast<std::size_t>(count) * sizeOf(dtype_);
  }
  std::byte* placeOf(int member, std::int64_t offset) const {
    return out_ + bytes(blocks_.start(member) + offset);
  }

  const std::byte* in_;
  std::byte* const out_;
  const Blocks blocks_;
  const DType dtype_;
  const int me_;  // the slice that this member would carry
  std::size_t sliceSlot_ = 0;
  std::size_t answerSlot_ = 0;
  std::byte* slices_ = nullptr;
  std::byte* answers_ = nullptr;
  std::byte* placed_ = nullptr;
  std::vector<std::byte> saved_;  // the input, while it may not be overwritten
};

}  // namespace

OperationPtr makeSlicedAllgather(HierarchyContext& context, const void* in, void* out,
                                 std::span<const std::int64_t> counts, DType dtype) {
  std::size_t elements = 0;
  for (const std::int64_t count : counts) elements += static_cast<std::size_t>(count);
  const Cut cut = cutOf(context, elements * sizeOf(dtype));
  return std::make_unique<SlicedAllgather>(context, in, out, counts, dtype, cut);
}

}  // namespace farandole::collective::hierarchy
