#include "collective/link/operation.h"

#include <string>

namespace farandole::collective::link {

LinkOperation::LinkOperation(Context& context, std::size_t counters)
    : LinkOperation(context, counters, context.nextSlots()) {}

LinkOperation::LinkOperation(Context& context, std::size_t counters, std::uint64_t slots)
    : EngineOperation(context), traffic_(std::make_shared<Traffic>(context, slots, counters)) {}

LinkOperation::~LinkOperation() {
  if (unfinished() && !harmless_ && context().failure.ok()) {
    context().failure =
        Status(Code::kCancelled, "an earlier operation of this process set was given up half-way");
  }
}

bool LinkOperation::reserve(std::size_t bytes) {
  if (bytes == 0 || traffic_->reserve(bytes)) return true;
  failForGood(Status::outOfMemory("no memory for the " + std::to_string(bytes) +
                                  " bytes that this operation needs beside its buffers"));
  return false;
}

Advance LinkOperation::turn() {
  Budget budget;
  Advance result = Advance::kNothing;
  bool something = false;
  std::uint64_t seen = 0;
  traffic_->enter();
  do {
    seen = traffic_->events();
    result = advance(budget);
    something = something || result != Advance::kNothing;
  } while (result != Advance::kDone && status().ok() && !budget.spent() &&
           traffic_->events() != seen);
  traffic_->leave();
  if (result == Advance::kDone) {
    if (status().ok()) traffic_->retire();
    return result;
  }
  if (status().ok() && traffic_->failed()) failForGood(traffic_->failure());
  return something || traffic_->events() != seen ? Advance::kSomething : Advance::kNothing;
}

}  // namespace farandole::collective::link
