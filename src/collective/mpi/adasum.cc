#include "collective/mpi/adasum.h"

#include <algorithm>
#include <vector>

#include "collective/adasum_weights.h"
#include "collective/mpi/arithmetic.h"

namespace farandole::mpi {
namespace {

// As in the shared-memory engine: sums of dot products are rounded at these boundaries.
constexpr std::int64_t kBlockElements = 16384;
constexpr std::size_t kBatchBytes = std::size_t{4} << 20;
// Bytes worked on in one call of progress().
constexpr std::size_t kBudget = std::size_t{16} << 20;

class Adasum final : public MpiOperation {
 public:
  Adasum(MpiContext& shared, std::span<const Piece> pieces, DType dtype, const Scale& scale)
      : MpiOperation(shared, "adasum"),
        pieces_(pieces.begin(), pieces.end()),
        reduction_{dtype, ReduceOp::kSum, scale},
        element_(sizeOf(dtype)) {}
  ~Adasum() override { abandon(requests_, std::move(scratch_)); }

 protected:
  Advance advance(Budget&) override {
    Advance result = Advance::kNothing;
    work_ = 0;
    while (work_ < kBudget) {
      const Advance step = advanceStage();
      if (step == Advance::kDone || !status().ok()) return step;
      if (step == Advance::kNothing) return result;
      result = Advance::kSomething;
    }
    return result;
  }

  std::size_t underWay() const override {
    return requests_.empty() ? 0 : batch_ * static_cast<Index>(members());
  }

 private:
  enum class Stage { kBegin, kReceive, kDots, kCombine, kFinish };
  using Index = std::size_t;

  Advance advanceStage() {
    switch (stage_) {
      case Stage::kBegin: return begin();
      case Stage::kReceive: return receive();
      case Stage::kDots: return dots();
      case Stage::kCombine: return combineBlock();
      case Stage::kFinish: return finish();
    }
    return Advance::kNothing;
  }

  // The next pieces [first_, last_) that are exchanged together.
  Advance begin() {
    first_ = last_;
    if (first_ == pieces_.size()) return Advance::kDone;
    batch_ = 0;
    while (last_ < pieces_.size() &&
           (last_ == first_ || batch_ + bytes(pieces_[last_].count) <= kBatchBytes)) {
      batch_ += bytes(pieces_[last_++].count);
    }
    Result<Scratch> memory = context().scratch.take(batch_ * static_cast<Index>(members()));
    if (!memory.ok()) {
      failForGood(memory.status());
      return Advance::kSomething;
    }
    scratch_ = std::move(*memory);
    std::byte* to = version(me());
    for (Index i = first_; i < last_; ++i) {
      scaledCopy(to, pieces_[i].in, pieces_[i].count, reduction_, before(reduction_.scale));
      to += bytes(pieces_[i].count);
    }
    work_ += batch_;
    if (batch_ >= kAnnouncedFrom && !check(announce())) return Advance::kSomething;
    for (int i = 1; i < members(); ++i) {
      const int source = (me() - i + members()) % members();
      if (!check(postReceive(requests_, version(source), batch_, source, kTagCollective, comm()))) {
        return Advance::kSomething;
      }
    }
    for (int i = 1; i < members(); ++i) {
      if (!check(postSend(requests_, version(me()), batch_, (me() + i) % members(), kTagCollective,
                          comm()))) {
        return Advance::kSomething;
      }
    }
    stage_ = Stage::kReceive;
    return Advance::kSomething;
  }

  Advance receive() {
    const Result<bool> tested = requests_.test(name());
    if (!check(tested.status())) return Advance::kSomething;
    if (!requests_.empty()) return tested.value() ? Advance::kSomething : Advance::kNothing;
    piece_ = first_;
    pieceStart_ = 0;
    startPiece();
    return Advance::kSomething;
  }

  void startPiece() {
    distance_ = 1;
    a_ = 0;
    startPair();
  }
  // Pairs are a and a + distance, for every second multiple a of the distance; an odd one is
  // carried over.
  void startPair() {
    while (distance_ < members() && a_ + distance_ >= members()) {
      distance_ *= 2;
      a_ = 0;
    }
    at_ = 0;
    sums_[0] = sums_[1] = sums_[2] = 0.0;
    stage_ = distance_ < members() && piece_ < last_ ? Stage::kDots : Stage::kFinish;
  }

  std::int64_t block() const { return std::min(kBlockElements, pieces_[piece_].count - at_); }
  std::byte* elements(int member) { return version(member) + pieceStart_ + bytes(at_); }

  Advance dots() {
    if (at_ < pieces_[piece_].count) {
      double values[3] = {0.0, 0.0, 0.0};
      dot3(elements(a_), elements(a_ + distance_), block(), reduction_.dtype, values);
      for (int i = 0; i < 3; ++i) sums_[i] += values[i];
      work_ += 2 * bytes(block());
      at_ += block();
      return Advance::kSomething;
    }
    weights_ = adasumWeights(sums_);
    at_ = 0;
    stage_ = Stage::kCombine;
    return Advance::kSomething;
  }

  Advance combineBlock() {
    if (at_ < pieces_[piece_].count) {
      std::byte* const a = elements(a_);
      combine(a, a, weights_.a, elements(a_ + distance_), weights_.b, block(), reduction_.dtype);
      work_ += 3 * bytes(block());
      at_ += block();
      return Advance::kSomething;
    }
    a_ += 2 * distance_;
    startPair();
    return Advance::kSomething;
  }

  // The winner is member 0's version.
  Advance finish() {
    const Piece& piece = pieces_[piece_];
    scaledCopy(piece.out, version(0) + pieceStart_, piece.count, reduction_,
               after(reduction_.scale));
    work_ += bytes(piece.count);
    pieceStart_ += bytes(piece.count);
    if (++piece_ < last_) {
      startPiece();
    } else {
      context().scratch.give(std::move(scratch_));
      scratch_ = {};
      stage_ = Stage::kBegin;
    }
    return Advance::kSomething;
  }

  Index bytes(std::int64_t count) const { return static_cast<Index>(count) * element_; }
  std::byte* version(int member) { return scratch_.data() + batch_ * static_cast<Index>(member); }

  const std::vector<Piece> pieces_;
  const Reduction reduction_;
  const Index element_;
  Stage stage_ = Stage::kBegin;
  Requests requests_;
  Scratch scratch_;  // everybody's versions of the batch
  Index batch_ = 0;  // bytes
  Index first_ = 0;
  Index last_ = 0;
  Index work_ = 0;
  // Within the batch.
  Index piece_ = 0;
  Index pieceStart_ = 0;
  int distance_ = 1;
  int a_ = 0;
  std::int64_t at_ = 0;
  double sums_[3] = {0.0, 0.0, 0.0};
  AdasumWeights weights_{1.0, 1.0};
};

}  // namespace

OperationPtr makeAdasum(MpiContext& context, std::span<const Piece> pieces, DType dtype,
                        const Scale& scale) {
  return std::make_unique<Adasum>(context, pieces, dtype, scale);
}

}  // namespace farandole::mpi
