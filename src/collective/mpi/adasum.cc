#include "collective/adasum.h"

#include <utility>

#include "collective/mpi/operations.h"

namespace farandole::collective::mpi {
namespace {

constexpr std::size_t kGroupBytes = std::size_t{4} << 20;

class Adasum final : public MpiOperation {
 public:
  Adasum(MpiContext& shared, std::span<const Piece> pieces, DType dtype, const Scale& scale)
      : MpiOperation(shared, "adasum"),
        groups_(pieces, dtype, scale, members(), me(), kGroupBytes) {}
  ~Adasum() override { abandon(requests_, std::move(scratch_)); }

 protected:
  Advance advance(Budget& budget) override {
    bool something = false;
    while (!budget.spent()) {
      const Advance step = advanceStage(budget);
      if (step == Advance::kDone || !status().ok()) return step;
      if (step == Advance::kNothing) break;
      something = true;
    }
    return something ? Advance::kSomething : Advance::kNothing;
  }

  std::size_t underWay() const override { return requests_.empty() ? 0 : groups_.allBytes(); }

 private:
  enum class Stage { kBegin, kFill, kReceive, kFinish };

  Advance advanceStage(Budget& budget) {
    switch (stage_) {
      case Stage::kBegin: return begin();
      case Stage::kFill:
        if (groups_.fill(budget)) post();
        return Advance::kSomething;
      case Stage::kReceive: return receive();
      case Stage::kFinish:
        if (groups_.finish(budget)) end();
        return Advance::kSomething;
    }
    return Advance::kNothing;
  }

  Advance begin() {
    if (!groups_.next()) return Advance::kDone;
    scratch_ = takeScratch(groups_.allBytes());
    if (!scratch_) return Advance::kSomething;
    groups_.use(scratch_.data());
    stage_ = Stage::kFill;
    return Advance::kSomething;
  }

  // Fails if it cannot.
  void post() {
    const std::size_t bytes = groups_.vectorBytes();
    if (bytes >= kAnnouncedFrom && !check(announce())) return;
    for (int i = 1; i < members(); ++i) {
      const int source = (me() - i + members()) % members();
      if (!check(postReceive(requests_, groups_.vectorOf(source), bytes, source, kTagCollective,
                             comm()))) {
        return;
      }
    }
    for (int i = 1; i < members(); ++i) {
      if (!check(postSend(requests_, groups_.vectorOf(me()), bytes, (me() + i) % members(),
                          kTagCollective, comm()))) {
        return;
      }
    }
    stage_ = Stage::kReceive;
  }

  Advance receive() {
    const Result<bool> tested = requests_.test(name());
    if (!check(tested.status())) return Advance::kSomething;
    if (!requests_.empty()) return tested.value() ? Advance::kSomething : Advance::kNothing;
    stage_ = Stage::kFinish;
    return Advance::kSomething;
  }

  void end() {
    context().scratch.give(std::move(scratch_));
    scratch_ = {};
    stage_ = Stage::kBegin;
  }

  AdasumGroups groups_;
  Stage stage_ = Stage::kBegin;
  Requests requests_;
  Scratch scratch_;  // everybody's vectors of the group
};

}  // namespace

OperationPtr makeAdasum(MpiContext& context, std::span<const Piece> pieces, DType dtype,
                        const Scale& scale) {
  return std::make_unique<Adasum>(context, pieces, dtype, scale);
}

}  // namespace farandole::collective::mpi
