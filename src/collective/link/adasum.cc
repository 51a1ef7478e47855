#include "collective/link/adasum.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "collective/adasum_weights.h"
#include "collective/link/move.h"

namespace farandole::net {
namespace {

// As in the shared-memory engine: dot products are summed block by block.
constexpr std::int64_t kBlockElements = 16384;
// Pieces travel together until they have so many bytes.
constexpr std::size_t kGroupBytes = std::size_t{1} << 20;

class Adasum final : public NetOperation {
 public:
  Adasum(Context& shared, std::span<const Piece> pieces, DType dtype, const Scale& scale)
      : NetOperation(shared, 0),
        pieces_(pieces.begin(), pieces.end()),
        dtype_(dtype),
        scale_(scale) {}

 protected:
  Advance advance(Budget& budget) override {
    const FpModeGuard guard;
    bool something = false;
    for (;;) {
      const Advance step = advanceStage(budget);
      if (step == Advance::kDone || !status().ok()) return step;
      if (step == Advance::kNothing) break;
      something = true;
      if (budget.spent()) break;
    }
    return something ? Advance::kSomething : Advance::kNothing;
  }

 private:
  enum class Stage { kNextGroup, kFill, kMove, kDots, kCombine, kEmpty };

  Advance advanceStage(Budget& budget) {
    switch (stage_) {
      case Stage::kNextGroup: return nextGroup();
      case Stage::kFill: return fill(budget);
      case Stage::kMove: return move();
      case Stage::kDots: return dots(budget);
      case Stage::kCombine: return combineBlock(budget);
      case Stage::kEmpty: return empty(budget);
    }
    return Advance::kNothing;
  }

  std::size_t bytesOf(std::int64_t count) const {
    return static_cast<std::size_t>(count) * sizeOf(dtype_);
  }
  std::byte* vectorOf(int member) const {
    return memory_->memory.get() + static_cast<std::size_t>(member) * bytesOf(groupCount_);
  }
  const Piece& piece() const { return pieces_[piece_]; }
  // The next block of the current piece, in a member's vector.
  std::byte* at(int member) const { return vectorOf(member) + bytesOf(start_ + done_); }
  std::int64_t blockCount() const { return std::min(kBlockElements, piece().count - done_); }

  Advance nextGroup() {
    groupBegin_ = groupEnd_;
    if (groupBegin_ == pieces_.size()) return Advance::kDone;
    groupCount_ = 0;
    while (groupEnd_ < pieces_.size() && bytesOf(groupCount_) < kGroupBytes) {
      groupCount_ += pieces_[groupEnd_++].count;
    }
    const std::size_t bytes = bytesOf(groupCount_) * static_cast<std::size_t>(members());
    memory_ = std::make_shared<Scratch>(Scratch::make(bytes));
    if (!memory_->memory) {
      failForGood(Status::outOfMemory("no memory for the " + std::to_string(bytes) +
                                      " bytes that Adasum needs beside its buffers"));
      return Advance::kSomething;
    }
    firstPiece();
    stage_ = Stage::kFill;
    return Advance::kSomething;
  }

  // ---- Through the pieces of the group, block by block.

  void firstPiece() {
    piece_ = groupBegin_;
    start_ = done_ = 0;
  }
  // False if there is none.
  bool block() {
    while (piece_ < groupEnd_ && done_ >= piece().count) nextPiece();
    return piece_ < groupEnd_;
  }
  void nextPiece() {
    start_ += piece().count;
    done_ = 0;
    ++piece_;
  }

  void scaled(void* to, const void* from, std::int64_t count, const Scale& scale) const {
    reduce(std::span(&to, 1), std::span(&from, 1), count, dtype_, ReduceOp::kSum, scale,
           Store::kCached);
  }

  Advance fill(Budget& budget) {
    if (block()) {
      const std::int64_t count = blockCount();
      scaled(at(me()), static_cast<const std::byte*>(piece().in) + bytesOf(done_), count,
             Scale{scale_.pre, 1.0, 1});
      budget.charge(2 * bytesOf(count));
      done_ += count;
      return Advance::kSomething;
    }
    MovePlan plan;
    for (int member = 0; member < members(); ++member) {
      if (member == me()) continue;
      plan.outgoing.push_back({member, vectorOf(me()), bytesOf(groupCount_)});
      plan.incoming.push_back({member, vectorOf(member), bytesOf(groupCount_)});
    }
    plan.keep = memory_;
    move_ = makeMove(context(), std::move(plan));
    stage_ = Stage::kMove;
    return Advance::kSomething;
  }

  Advance move() {
    switch (move_->progress()) {
      case Progress::kPending: return move_->moved() ? Advance::kSomething : Advance::kNothing;
      case Progress::kFailed: failForGood(move_->status()); return Advance::kSomething;
      case Progress::kDone: break;
    }
    move_.reset();
    alive_.clear();
    for (int member = 0; member < members(); ++member) alive_.push_back(member);
    pair_ = 0;
    firstPiece();
    beginPiece();
    return Advance::kSomething;
  }

  // ---- The tournament: pairs of those alive, for each pair its pieces.

  void beginPiece() {
    while (piece_ < groupEnd_ && piece().count == 0) nextPiece();
    done_ = 0;
    std::fill_n(sums_, 3, 0.0);
    stage_ = piece_ < groupEnd_ ? Stage::kDots : Stage::kEmpty;
    if (stage_ == Stage::kEmpty) nextPair();
  }
  void nextPair() {
    pair_ += 2;
    if (pair_ + 1 >= alive_.size()) {
      std::vector<int> winners;
      for (std::size_t i = 0; i < alive_.size(); i += 2) winners.push_back(alive_[i]);
      alive_ = std::move(winners);
      pair_ = 0;
    }
    firstPiece();
    if (alive_.size() > 1 && groupCount_ > 0) return beginPiece();
    stage_ = Stage::kEmpty;
  }
  int first() const { return alive_[pair_]; }
  int second() const { return alive_[pair_ + 1]; }

  Advance dots(Budget& budget) {
    if (done_ < piece().count) {
      const std::int64_t count = blockCount();
      double block[3] = {0.0, 0.0, 0.0};
      dot3(at(first()), at(second()), count, dtype_, block);
      for (int i = 0; i < 3; ++i) sums_[i] += block[i];
      budget.charge(2 * bytesOf(count));
      done_ += count;
      return Advance::kSomething;
    }
    weights_ = adasumWeights(sums_);
    done_ = 0;
    stage_ = Stage::kCombine;
    return Advance::kSomething;
  }

  Advance combineBlock(Budget& budget) {
    if (done_ < piece().count) {
      const std::int64_t count = blockCount();
      combine(at(first()), at(first()), weights_.a, at(second()), weights_.b, count, dtype_);
      budget.charge(3 * bytesOf(count));
      done_ += count;
      return Advance::kSomething;
    }
    nextPiece();
    beginPiece();
    return Advance::kSomething;
  }

  Advance empty(Budget& budget) {
    if (!block()) {
      stage_ = Stage::kNextGroup;
      return Advance::kSomething;
    }
    const std::int64_t count = blockCount();
    scaled(static_cast<std::byte*>(piece().out) + bytesOf(done_), at(0), count,
           Scale{1.0, scale_.post, scale_.divisor});
    budget.charge(2 * bytesOf(count));
    done_ += count;
    return Advance::kSomething;
  }

  const std::vector<Piece> pieces_;
  const DType dtype_;
  const Scale scale_;
  Stage stage_ = Stage::kNextGroup;

  // The group: pieces groupBegin_ … groupEnd_ - 1, and everybody's vectors of them.
  std::size_t groupBegin_ = 0;
  std::size_t groupEnd_ = 0;
  std::int64_t groupCount_ = 0;
  std::shared_ptr<Scratch> memory_;
  OperationPtr move_;

  std::size_t piece_ = 0;
  std::int64_t start_ = 0;  // of the piece, in the group
  std::int64_t done_ = 0;   // elements of the piece

  std::vector<int> alive_;
  std::size_t pair_ = 0;
  double sums_[3] = {0.0, 0.0, 0.0};
  AdasumWeights weights_{};
};

}  // namespace

OperationPtr makeAdasum(Context& context, std::span<const Piece> pieces, DType dtype,
                        const Scale& scale) {
  return std::make_unique<Adasum>(context, pieces, dtype, scale);
}

}  // namespace farandole::net
