#include "collective/link/operation.h"

#include <string>

namespace farandole::net {

NetOperation::NetOperation(Context& context, std::size_t counters)
    : NetOperation(context, counters, context.nextSlots()) {}

NetOperation::NetOperation(Context& context, std::size_t counters, std::uint64_t slots)
    : context_(context), traffic_(std::make_shared<Traffic>(context, slots, counters)) {}

NetOperation::~NetOperation() {
  const bool underWay = !done_ && status_.ok();
  if (underWay && !harmless_ && context_.failure.ok()) {
    context_.failure =
        Status(Code::kCancelled, "an earlier operation of this process set was given up half-way");
  }
}

void NetOperation::failForGood(Status status) {
  if (context_.failure.ok()) context_.failure = status;
  fail(std::move(status));
}

bool NetOperation::reserve(std::size_t bytes) {
  if (bytes == 0 || traffic_->reserve(bytes)) return true;
  failForGood(Status::outOfMemory("no memory for the " + std::to_string(bytes) +
                                  " bytes that this operation needs beside its buffers"));
  return false;
}

Progress NetOperation::progress() {
  if (done_) return Progress::kDone;
  if (status_.ok() && !context_.failure.ok()) status_ = context_.failure;
  if (!status_.ok()) return Progress::kFailed;
  Budget budget;
  Advance result = Advance::kNothing;
  bool something = false;
  std::uint64_t seen = 0;
  traffic_->enter();
  do {
    seen = traffic_->events();
    result = advance(budget);
    something = something || result != Advance::kNothing;
  } while (result != Advance::kDone && status_.ok() && !budget.spent() &&
           traffic_->events() != seen);
  traffic_->leave();
  if (status_.ok() && result != Advance::kDone && traffic_->failed()) {
    failForGood(traffic_->failure());
  }
  if (!status_.ok()) return Progress::kFailed;
  if (result == Advance::kDone) {
    done_ = true;
    traffic_->retire();
    return Progress::kDone;
  }
  moved_ = something || traffic_->events() != seen;
  return Progress::kPending;
}

}  // namespace farandole::net
