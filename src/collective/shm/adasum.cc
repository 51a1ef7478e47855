#include "collective/adasum.h"

#include <string>
#include <utility>
#include <vector>

#include "base/rounding.h"
#include "collective/shm/gate.h"
#include "collective/shm/operations.h"

namespace farandole::collective::shm {
namespace {

// Every member copies its scaled input into scratch memory of its arena; all members then work on
// all pairs, as a team. A scratch is the member's vector and, behind it, its table.
class Adasum final : public ShmOperation {
 public:
  Adasum(ShmContext& shared, std::span<const Piece> pieces, DType dtype, const Scale& scale)
      : ShmOperation(shared),
        tournament_(pieces, dtype, scale, board().size(), board().me(), board().size()),
        gate_(GateKind::kAdasum, tournament_.vectorBytes()) {}
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
  enum class Stage { kAllocate, kFill, kGate, kWork, kAwaitTeam, kEmpty, kAwaitEmptied };

  Advance advanceStage(Budget& budget) {
    switch (stage_) {
      case Stage::kAllocate: return allocate();
      case Stage::kFill: return fill(budget);
      case Stage::kGate: return passGate();
      case Stage::kWork: return work(budget);
      case Stage::kAwaitTeam: return awaitTeam();
      case Stage::kEmpty: return empty(budget);
      case Stage::kAwaitEmptied: return leave();
    }
    return Advance::kNothing;
  }

  std::size_t tableOffset() const { return roundUp(tournament_.vectorBytes(), 64); }
  std::size_t scratchBytes() const { return tableOffset() + tournament_.tableBytes(); }

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
    if (block_ < tournament_.blocks()) {
      budget.charge(tournament_.fill(block_++, static_cast<std::byte*>(scratch_)));
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
    std::vector<std::byte*> tables;
    for (std::byte* const scratch : scratches_) tables.push_back(scratch + tableOffset());
    tournament_.begin(scratches_, std::move(tables));
    goOn();
    return Advance::kSomething;
  }

  void goOn() {
    block_ = 0;
    stage_ = tournament_.over() ? Stage::kEmpty : Stage::kWork;
  }

  Advance work(Budget& budget) {
    const std::size_t bytes = tournament_.work();
    budget.charge(bytes);
    if (bytes == 0) announce(Stage::kAwaitTeam);
    return Advance::kSomething;
  }

  // A step without data: this member is through with the stage.
  void announce(Stage next) {
    ++step_;
    board().contribute(step_ + 1);
    stage_ = next;
  }

  Advance awaitTeam() {
    if (!board().allContributed(step_)) return Advance::kNothing;
    tournament_.next();
    goOn();
    return Advance::kSomething;
  }

  // Everybody reads the result from member 0's scratch.
  Advance empty(Budget& budget) {
    if (block_ == tournament_.blocks()) {
      announce(Stage::kAwaitEmptied);
      return Advance::kSomething;
    }
    budget.charge(tournament_.empty(block_++, scratches_[0]));
    return Advance::kSomething;
  }

  // No scratch memory is freed before all members have read it.
  Advance leave() {
    if (!board().allContributed(step_)) return Advance::kNothing;
    board().finish(step_ + 1);
    return Advance::kDone;
  }

  AdasumTournament tournament_;
  const Gate gate_;
  Stage stage_ = Stage::kAllocate;
  void* scratch_ = nullptr;            // this member's; owned
  std::vector<std::byte*> scratches_;  // everybody's
  std::size_t block_ = 0;              // filled or emptied so far
  std::uint64_t step_ = 0;
};

}  // namespace

OperationPtr makeAdasum(ShmContext& context, std::span<const Piece> pieces, DType dtype,
                        const Scale& scale) {
  return std::make_unique<Adasum>(context, pieces, dtype, scale);
}

}  // namespace farandole::collective::shm
