#include <vector>

#include "collective/hierarchy/blocks.h"
#include "collective/hierarchy/stages.h"
#include "collective/segments.h"

namespace farandole::collective::hierarchy {
namespace {

// First: the machine's members reduce-scatter the chunk so that each carrier has its slice of every
// machine's block. Travel: carriers reduce-scatter the blocks' slices to their machines. Last: the
// carriers hand to each neighbour what is its own.
class SlicedReduceScatter final : public Pipeline {
 public:
  SlicedReduceScatter(HierarchyContext& shared, const void* in, void* out,
                      std::span<const std::int64_t> counts, const Work& work, const Cut& cut)
      : Pipeline(shared, cut),
        in_(static_cast<const std::byte*>(in)),
        out_(static_cast<std::byte*>(out)),
        blocks_(machines(), counts, cut),
        work_(work),
        me_(machines().local()) {
    packed_ = buffer(Buffer::kPacked, inside(blocks_.total(0)));
    sliceSlot_ = ringSlot(inside(blocks_.across(0, 0)));
    answerSlot_ = ringSlot(inside(blocks_.slice(machines().mine(), 0, 0)));
    slices_ = buffer(Buffer::kSlices, kRing * sliceSlot_);
    answers_ = buffer(Buffer::kAnswers, kRing * answerSlot_);
    // Later chunks are read from the input after earlier ones are written: an output inside it must
    // wait, unless it is the very place of this member's part.
    const std::int64_t mine = counts[static_cast<std::size_t>(machines().me())];
    const std::byte* own = in_ + outside(blocks_.start(machines().me()));
    const std::int64_t all = blocks_.start(machines().members() - 1) + counts.back();
    if (out_ != own && overlap(in_, outside(all), out_, outside(mine))) {
      held_.resize(outside(mine));
      target_ = held_.data();
    } else {
      target_ = out_;
    }
  }

 protected:
  OperationPtr first(std::int64_t chunk) override {
    if (blocks_.total(chunk) == 0) return nullptr;
    std::byte* to = packed_;
    for (int slice = 0; slice < blocks_.slices(); ++slice) {
      blocks_.forEachRun(chunk, slice, [&](int member, std::int64_t offset, std::int64_t count) {
        work_.enter(to, in_ + outside(blocks_.start(member) + offset), count);
        to += inside(count);
      });
    }
    return local().reducescatter(packed_, ring(slices_, sliceSlot_, chunk),
                                 blocks_.perCarrier(chunk), work_.inside, work_.op, work_.before);
  }

  OperationPtr travel(std::int64_t chunk) override {
    if (blocks_.across(chunk, me_) == 0) return nullptr;
    return context().between->reducescatter(
        ring(slices_, sliceSlot_, chunk), ring(answers_, answerSlot_, chunk),
        blocks_.perMachine(chunk, me_), work_.inside, work_.op, {});
  }

  void travelled(std::int64_t chunk) override {
    const std::int64_t count = blocks_.slice(machines().mine(), chunk, me_);
    if (count > 0) work_.leave(ring(answers_, answerSlot_, chunk), count);
  }

  OperationPtr last(std::int64_t chunk) override {
    if (blocks_.total(chunk) == 0) return nullptr;
    std::byte* const to = target_ + outside(blocks_.begin(machines().me(), chunk));
    if (blocks_.slices() == 1) {
      return local().scatter(ring(answers_, answerSlot_, chunk), to, blocks_.perOwner(chunk, 0),
                             work_.outside, 0);
    }
    return local().alltoall(ring(answers_, answerSlot_, chunk), blocks_.perOwner(chunk, me_), to,
                            blocks_.mineBySlice(chunk), work_.outside);
  }

  void ended(std::int64_t chunk) override {
    const std::int64_t all = blocks_.begin(machines().me(), chunk + 1);
    if (target_ != out_ && chunk + 1 == chunks()) {
      copy(out_, held_.data(), outside(all), Store::kCached);
    }
  }

 private:
  std::size_t inside(std::int64_t count) const {
    return static_cast<std::size_t>(count) * sizeOf(work_.inside);
  }
  std::size_t outside(std::int64_t count) const {
    return static_cast<std::size_t>(count) * sizeOf(work_.outside);
  }

  const std::byte* const in_;
  std::byte* const out_;
  const Blocks blocks_;
  const Work work_;
  const int me_;  // the slice that this member would carry
  std::size_t sliceSlot_ = 0;
  std::size_t answerSlot_ = 0;
  std::byte* packed_ = nullptr;
  std::byte* slices_ = nullptr;
  std::byte* answers_ = nullptr;
  std::byte* target_ = nullptr;
  std::vector<std::byte> held_;  // the result, while the input may not be overwritten
};

}  // namespace

OperationPtr makeSlicedReduceScatter(HierarchyContext& context, const void* in, void* out,
                                     std::span<const std::int64_t> counts, const Work& work) {
  std::size_t elements = 0;
  for (const std::int64_t count : counts) elements += static_cast<std::size_t>(count);
  const Cut cut = cutOf(context, elements * sizeOf(work.inside));
  return std::make_unique<SlicedReduceScatter>(context, in, out, counts, work, cut);
}

}  // namespace farandole::collective::hierarchy
