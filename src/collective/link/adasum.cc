#include "collective/adasum.h"

#include <memory>
#include <string>
#include <utility>

#include "collective/link/operations.h"

namespace farandole::collective::link {
namespace {

constexpr std::size_t kGroupBytes = std::size_t{1} << 20;

class Adasum final : public LinkOperation {
 public:
  Adasum(Context& shared, std::span<const Piece> pieces, DType dtype, const Scale& scale)
      : LinkOperation(shared, 0), groups_(pieces, dtype, scale, members(), me(), kGroupBytes) {}

 protected:
  Advance advance(Budget& budget) override {
    const FpModeGuard guard;
    bool something = false;
    while (!budget.spent()) {
      const Advance step = advanceStage(budget);
      if (step == Advance::kDone || !status().ok()) return step;
      if (step == Advance::kNothing) break;
      something = true;
    }
    return something ? Advance::kSomething : Advance::kNothing;
  }

 private:
  enum class Stage { kBegin, kFill, kMove, kFinish };

  Advance advanceStage(Budget& budget) {
    switch (stage_) {
      case Stage::kBegin: return begin();
      case Stage::kFill:
        if (groups_.fill(budget)) startMove();
        return Advance::kSomething;
      case Stage::kMove: return move();
      case Stage::kFinish:
        if (groups_.finish(budget)) stage_ = Stage::kBegin;
        return Advance::kSomething;
    }
    return Advance::kNothing;
  }

  Advance begin() {
    if (!groups_.next()) return Advance::kDone;
    const std::size_t bytes = groups_.allBytes();
    memory_ = std::make_shared<Scratch>(Scratch::allocate(bytes));
    if (!*memory_) {
      failForGood(Status::outOfMemory("no memory for the " + std::to_string(bytes) +
                                      " bytes that Adasum needs beside its buffers"));
      return Advance::kSomething;
    }
    groups_.use(memory_->data());
    stage_ = Stage::kFill;
    return Advance::kSomething;
  }

  void startMove() {
    MoveLayout layout;
    for (int member = 0; member < members(); ++member) {
      if (member == me()) continue;
      layout.outgoing.push_back({member, groups_.vectorOf(me()), groups_.vectorBytes()});
      layout.incoming.push_back({member, groups_.vectorOf(member), groups_.vectorBytes()});
    }
    layout.keep = memory_;
    move_ = makeMove(context(), std::move(layout));
    stage_ = Stage::kMove;
  }

  Advance move() {
    switch (move_->progress()) {
      case Progress::kPending: return move_->moved() ? Advance::kSomething : Advance::kNothing;
      case Progress::kFailed: failForGood(move_->status()); return Advance::kSomething;
      case Progress::kDone: break;
    }
    move_.reset();
    stage_ = Stage::kFinish;
    return Advance::kSomething;
  }

  AdasumGroups groups_;
  Stage stage_ = Stage::kBegin;
  std::shared_ptr<Scratch> memory_;
  OperationPtr move_;
};

}  // namespace

OperationPtr makeAdasum(Context& context, std::span<const Piece> pieces, DType dtype,
                        const Scale& scale) {
  return std::make_unique<Adasum>(context, pieces, dtype, scale);
}

}  // namespace farandole::collective::link
