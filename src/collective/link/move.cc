#include <algorithm>
#include <cstring>
#include <utility>

#include "collective/link/operations.h"

namespace farandole::collective::link {
namespace {

// A message: long enough that its cost does not count, short enough that other process sets which
// share the connection get their turn.
constexpr std::size_t kMovePart = std::size_t{1} << 20;
// How many messages of one transfer are in flight at once.
constexpr std::size_t kMoveWindow = 4;
constexpr std::size_t kCopyBlock = std::size_t{1} << 20;

class Move final : public LinkOperation {
 public:
  Move(Context& shared, MoveLayout layout)
      : LinkOperation(shared, kMoveWindow * (layout.outgoing.size() + layout.incoming.size())),
        layout_(std::move(layout)) {
    traffic().keep(layout_.keep);
    // Everybody begins with another one.
    const auto distance = [&](const Transfer& transfer) {
      return (transfer.member - me() + members()) % members();
    };
    const auto nearest = [&](const Transfer& a, const Transfer& b) {
      return distance(a) < distance(b);
    };
    std::ranges::sort(layout_.incoming,
                      [&](const auto& a, const auto& b) { return nearest(b, a); });
    std::ranges::sort(layout_.outgoing, nearest);
    for (const Transfer& transfer : layout_.incoming) addFlow(transfer, false);
    for (const Transfer& transfer : layout_.outgoing) addFlow(transfer, true);
  }

 protected:
  Advance advance(Budget& budget) override {
    bool something = false;
    bool complete = true;
    for (Flow& flow : flows_) {
      something = advance(flow) || something;
      complete = complete && through(flow);
    }
    while (copied_ < layout_.bytes && !budget.spent()) {
      const std::size_t bytes = std::min(kCopyBlock, layout_.bytes - copied_);
      copy(layout_.to + copied_, layout_.from + copied_, bytes, Store::kCached);
      copied_ += bytes;
      budget.charge(2 * bytes);
      something = true;
    }
    if (complete && copied_ == layout_.bytes) return Advance::kDone;
    return something ? Advance::kSomething : Advance::kNothing;
  }

 private:
  struct Flow {
    Transfer transfer;
    bool out = false;
    std::size_t firstCounter = 0;
    std::size_t part = 0;  // bytes of a message
    std::size_t parts = 0;
    std::size_t issued = 0;
  };

  void addFlow(const Transfer& transfer, bool out) {
    Flow flow{transfer, out, kMoveWindow * flows_.size(), 0, 0, 0};
    // There are only so many steps.
    flow.part = std::max(kMovePart, transfer.bytes / (kSteps / 2));
    flow.parts = (transfer.bytes + flow.part - 1) / flow.part;
    flows_.push_back(flow);
  }

  bool advance(Flow& flow) {
    bool something = false;
    while (flow.issued < flow.parts) {
      const std::size_t counter = flow.firstCounter + flow.issued % kMoveWindow;
      if (!traffic().clear(counter)) break;
      const std::size_t begin = flow.issued * flow.part;
      const std::span bytes(flow.transfer.memory + begin,
                            std::min(flow.part, flow.transfer.bytes - begin));
      if (flow.out) {
        traffic().send(flow.transfer.member, flow.issued, bytes, counter);
      } else {
        traffic().receive(flow.transfer.member, flow.issued, bytes, counter);
      }
      ++flow.issued;
      something = true;
    }
    return something;
  }

  bool through(const Flow& flow) const {
    if (flow.issued < flow.parts) return false;
    for (std::size_t i = 0; i < kMoveWindow; ++i) {
      if (!traffic().clear(flow.firstCounter + i)) return false;
    }
    return true;
  }

  MoveLayout layout_;
  std::vector<Flow> flows_;
  std::size_t copied_ = 0;
};

}  // namespace

OperationPtr makeMove(Context& context, MoveLayout layout) {
  return std::make_unique<Move>(context, std::move(layout));
}

}  // namespace farandole::collective::link
