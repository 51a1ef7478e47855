#include "collective/shm/operation.h"

#include <string>

namespace farandole {
namespace {

// Bytes moved in one call of progress(): about two milliseconds at the pace of main memory.
constexpr std::int64_t kBudget = std::int64_t{8} << 20;

}  // namespace

void Budget::refill() { left_ = kBudget; }

void ShmOperation::failForGood(Status status) {
  if (context_.failure.ok()) context_.failure = status;
  fail(std::move(status));
}

Progress ShmOperation::progress() {
  if (done_) return Progress::kDone;
  if (status_.ok() && !context_.failure.ok()) status_ = context_.failure;
  if (!status_.ok()) return Progress::kFailed;
  Budget budget;
  budget.refill();
  const Advance result = advance(budget);
  moved_ = result != Advance::kNothing;
  if (const int stranger = board().strangerFound(); stranger >= 0 && status_.ok()) {
    failForGood(Status::internal("member " + std::to_string(stranger) +
                                 " of this set speaks for another epoch"));
  }
  if (!status_.ok()) return Progress::kFailed;
  if (result == Advance::kDone) {
    done_ = true;
    return Progress::kDone;
  }
  if (result == Advance::kSomething) return Progress::kPending;
  // Only who finds nothing to do looks for the reason: what the dead have left behind is complete.
  const Neighbourhood& neighbourhood = board().neighbourhood();
  if (neighbourhood.failed()) {
    failForGood(neighbourhood.failure());
  } else if (const int gone = board().missedFor(); gone >= 0) {
    failForGood(neighbourhood.goneStatus(board().localRank(gone)));
  }
  return status_.ok() ? Progress::kPending : Progress::kFailed;
}

}  // namespace farandole
