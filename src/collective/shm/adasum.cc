#include "collective/shm/adasum.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "collective/segments.h"
#include "collective/shm/gate.h"

namespace farandole {
namespace {

// Dot products are summed block by block, in order, whoever computed a block: the result does not
// depend on how the work is shared.
constexpr std::int64_t kBlockElements = 16384;

struct Block {
  std::size_t piece;
  std::int64_t begin;  // in the concatenation
  std::int64_t count;
};
struct Dots {
  double values[3];
};
// One round of the tournament: `a` receives the result of a and b.
struct Pair {
  int a;
  int b;
};

// Every member copies its scaled input into scratch memory of its arena; all members then work on
// all pairs, block by block: item i (pair i / blocks, block i % blocks) is member i % n's.
class Adasum final : public ShmOperation {
 public:
  Adasum(ShmContext& shared, std::span<const Piece> pieces, DType dtype, const Scale& scale)
      : ShmOperation(shared),
        segments_(pieces, sizeOf(dtype)),
        dtype_(dtype),
        scale_(scale),
        gate_(GateKind::kAdasum, segments_.bytes()) {
    cutIntoBlocks();
    for (int member = 0; member < board().size(); ++member) alive_.push_back(member);
  }
  ~Adasum() override {
    if (scratch_ != nullptr) board().neighbourhood().arena().free(scratch_);
  }

 protected:
  Advance advance(Budget& budget) override {
    const FpModeGuard guard;
    Advance result = Advance::kNothing;
    for (;;) {
      const Advance step = advanceStage(budget);
      if (step == Advance::kDone || !status().ok()) return step;
      if (step == Advance::kNothing) return result;
      result = Advance::kSomething;
      if (budget.spent()) return result;
    }
  }

 private:
  enum class Stage {
    kAllocate,
    kFill,
    kGate,
    kDots,
    kAwaitDots,
    kCombine,
    kAwaitCombined,
    kEmpty,
    kAwaitEmptied
  };

  Advance advanceStage(Budget& budget) {
    switch (stage_) {
      case Stage::kAllocate: return allocate();
      case Stage::kFill: return fill(budget);
      case Stage::kGate: return passGate();
      case Stage::kDots: return computeDots(budget);
      case Stage::kAwaitDots: return await(Stage::kCombine);
      case Stage::kCombine: return combineBlocks(budget);
      case Stage::kAwaitCombined: return nextLevel();
      case Stage::kEmpty: return empty(budget);
      case Stage::kAwaitEmptied: return leave();
    }
    return Advance::kNothing;
  }

  void cutIntoBlocks() {
    std::int64_t start = 0;
    const auto pieces = segments_.pieces();
    for (std::size_t piece = 0; piece < pieces.size(); ++piece) {
      for (std::int64_t at = 0; at < pieces[piece].count; at += kBlockElements) {
        blocks_.push_back({piece, start + at, std::min(kBlockElements, pieces[piece].count - at)});
      }
      start += pieces[piece].count;
    }
  }

  std::size_t tableOffset() const { return (segments_.bytes() + 63) / 64 * 64; }
  std::size_t scratchBytes() {
    const auto members = static_cast<std::size_t>(board().size());
    const std::size_t items = (members / 2 + 1) * blocks_.size();
    return tableOffset() + (items / members + 1) * sizeof(Dots);
  }
  std::byte* scratchOf(int member) const { return scratches_[static_cast<std::size_t>(member)]; }
  std::byte* elements(int member, std::int64_t begin) const {
    return scratchOf(member) + static_cast<std::size_t>(begin) * segments_.elementBytes();
  }
  std::size_t items() const { return pairs_.size() * blocks_.size(); }
  std::byte* dotsOf(std::size_t item) {
    const auto members = static_cast<std::size_t>(board().size());
    return scratchOf(static_cast<int>(item % members)) + tableOffset() +
           item / members * sizeof(Dots);
  }

  Advance allocate() {
    const std::uint64_t step = board().base();
    if (!board().mayContribute(step)) return Advance::kNothing;
    Result<void*> memory = board().neighbourhood().arena().allocate(scratchBytes());
    if (!memory.ok()) {
      gate_.write(board(), step, GateNote{false, true, scratchBytes(), {}});
      board().finish(step + 1);
      fail(memory.status());
      return Advance::kSomething;
    }
    scratch_ = *memory;
    stage_ = Stage::kFill;
    return Advance::kSomething;
  }

  Advance fill(Budget& budget) {
    if (item_ < blocks_.size()) {
      const Block& block = blocks_[item_++];
      std::byte* to = static_cast<std::byte*>(scratch_) +
                      static_cast<std::size_t>(block.begin) * segments_.elementBytes();
      segments_.forEach(
          block.begin, block.begin + block.count,
          [&](std::size_t piece, std::int64_t offset, std::int64_t count, std::int64_t) {
            scaled(to, segments_.in(piece, offset), count, Scale{scale_.pre, 1.0, 1});
          });
      budget.charge(2 * static_cast<std::size_t>(block.count) * segments_.elementBytes());
      return Advance::kSomething;
    }
    step_ = board().base();
    gate_.write(board(), step_,
                GateNote{true,
                         false,
                         scratchBytes(),
                         {{board().neighbourhood().offsetOf(scratch_), scratchBytes()}}});
    board().contribute(step_ + 1);
    stage_ = Stage::kGate;
    return Advance::kSomething;
  }

  void scaled(void* to, const void* from, std::int64_t count, const Scale& scale) {
    reduce(std::span(&to, 1), std::span(&from, 1), count, dtype_, ReduceOp::kSum, scale,
           Store::kCached);
  }

  Advance passGate() {
    while (scratches_.size() < static_cast<std::size_t>(board().size())) {
      const int member = static_cast<int>(scratches_.size());
      if (!board().contributed(member, step_)) return Advance::kNothing;
      const Result<GateNote> note = gate_.read(board(), step_, member);
      if (!note.ok()) {
        failForGood(note.status());
        return Advance::kSomething;
      }
      if (note.value().failed) {
        board().finish(step_ + 1);
        fail(Status::outOfMemory(
            "member " + std::to_string(member) + " of this set has no room for the " +
            std::to_string(note.value().extra) + " bytes of shared memory that Adasum needs"));
        return Advance::kSomething;
      }
      const std::vector<SharedRange>& ranges = note.value().ranges;
      std::byte* base = ranges.size() == 1 && ranges[0].bytes == scratchBytes()
                            ? board().at(member, ranges[0].offset, ranges[0].bytes)
                            : nullptr;
      if (base == nullptr) {
        failForGood(Status(Code::kMismatch, "member " + std::to_string(member) +
                                                " of this set points outside its memory"));
        return Advance::kSomething;
      }
      scratches_.push_back(base);
    }
    startLevel();
    return Advance::kSomething;
  }

  void startLevel() {
    pairs_.clear();
    std::vector<int> winners;
    for (std::size_t i = 0; i < alive_.size(); i += 2) {
      if (i + 1 < alive_.size()) pairs_.push_back({alive_[i], alive_[i + 1]});
      winners.push_back(alive_[i]);
    }
    alive_ = std::move(winners);
    item_ = static_cast<std::size_t>(board().me());
    stage_ = pairs_.empty() ? Stage::kEmpty : Stage::kDots;
    if (pairs_.empty()) item_ = 0;
  }

  // A step without data: everybody is through with the stage.
  void announce(Stage next) {
    ++step_;
    board().contribute(step_ + 1);
    item_ = static_cast<std::size_t>(board().me());
    stage_ = next;
  }
  Advance await(Stage next) {
    if (!board().allContributed(step_)) return Advance::kNothing;
    stage_ = next;
    if (next == Stage::kCombine) computeWeights();
    return Advance::kSomething;
  }

  Advance computeDots(Budget& budget) {
    if (item_ >= items()) {
      announce(Stage::kAwaitDots);
      return Advance::kSomething;
    }
    const Pair& pair = pairs_[item_ / blocks_.size()];
    const Block& block = blocks_[item_ % blocks_.size()];
    Dots dots{};
    dot3(elements(pair.a, block.begin), elements(pair.b, block.begin), block.count, dtype_,
         dots.values);
    std::memcpy(dotsOf(item_), &dots, sizeof(dots));
    budget.charge(2 * static_cast<std::size_t>(block.count) * segments_.elementBytes());
    item_ += static_cast<std::size_t>(board().size());
    return Advance::kSomething;
  }

  void computeWeights() {
    const std::size_t pieces = segments_.pieces().size();
    std::vector<Dots> sums(pairs_.size() * pieces, Dots{});
    for (std::size_t item = 0; item < items(); ++item) {
      Dots dots;
      std::memcpy(&dots, dotsOf(item), sizeof(dots));
      Dots& sum = sums[item / blocks_.size() * pieces + blocks_[item % blocks_.size()].piece];
      for (int i = 0; i < 3; ++i) sum.values[i] += dots.values[i];
    }
    weights_.clear();
    for (const Dots& sum : sums) weights_.push_back(adasumWeights(sum.values));
  }

  Advance combineBlocks(Budget& budget) {
    if (item_ >= items()) {
      announce(Stage::kAwaitCombined);
      return Advance::kSomething;
    }
    const std::size_t pairIndex = item_ / blocks_.size();
    const Pair& pair = pairs_[pairIndex];
    const Block& block = blocks_[item_ % blocks_.size()];
    const AdasumWeights& weights = weights_[pairIndex * segments_.pieces().size() + block.piece];
    std::byte* a = elements(pair.a, block.begin);
    combine(a, a, weights.a, elements(pair.b, block.begin), weights.b, block.count, dtype_);
    budget.charge(3 * static_cast<std::size_t>(block.count) * segments_.elementBytes());
    item_ += static_cast<std::size_t>(board().size());
    return Advance::kSomething;
  }

  Advance nextLevel() {
    if (!board().allContributed(step_)) return Advance::kNothing;
    startLevel();
    return Advance::kSomething;
  }

  // Everybody reads the result from member 0's scratch.
  Advance empty(Budget& budget) {
    if (item_ >= blocks_.size()) {
      announce(Stage::kAwaitEmptied);
      return Advance::kSomething;
    }
    const Block& block = blocks_[item_++];
    const std::byte* from = elements(0, block.begin);
    segments_.forEach(
        block.begin, block.begin + block.count,
        [&](std::size_t piece, std::int64_t offset, std::int64_t count, std::int64_t) {
          scaled(segments_.out(piece, offset), from, count,
                 Scale{1.0, scale_.post, scale_.divisor});
        });
    budget.charge(2 * static_cast<std::size_t>(block.count) * segments_.elementBytes());
    return Advance::kSomething;
  }

  // Nobody's scratch is freed before everybody has read it.
  Advance leave() {
    if (!board().allContributed(step_)) return Advance::kNothing;
    board().finish(step_ + 1);
    return Advance::kDone;
  }

  const Segments segments_;
  const DType dtype_;
  const Scale scale_;
  const Gate gate_;
  std::vector<Block> blocks_;

  Stage stage_ = Stage::kAllocate;
  void* scratch_ = nullptr;            // this member's; owned
  std::vector<std::byte*> scratches_;  // everybody's
  std::vector<int> alive_;
  std::vector<Pair> pairs_;             // of the current level
  std::vector<AdasumWeights> weights_;  // [pair][piece]
  std::size_t item_ = 0;
  std::uint64_t step_ = 0;
};

}  // namespace

OperationPtr makeAdasum(ShmContext& context, std::span<const Piece> pieces, DType dtype,
                        const Scale& scale) {
  return std::make_unique<Adasum>(context, pieces, dtype, scale);
}

}  // namespace farandole
