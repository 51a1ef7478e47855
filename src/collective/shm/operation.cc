#include "collective/shm/operation.h"

#include <string>

namespace farandole::collective::shm {

Advance ShmOperation::turn() {
  Budget budget;
  const Advance result = advance(budget);
  if (const int stranger = board().strangerFound(); stranger >= 0 && status().ok()) {
    failForGood(Status::internal("member " + std::to_string(stranger) +
                                 " of this set speaks for another epoch"));
  }
  if (result == Advance::kNothing && status().ok()) lookForTheMissing();
  return result;
}

// Only now: what lost members have left behind is complete.
void ShmOperation::lookForTheMissing() {
  const machine::Neighbourhood& neighbourhood = board().neighbourhood();
  if (neighbourhood.failed()) {
    failForGood(neighbourhood.failure());
  } else if (const int gone = board().missedFor(); gone >= 0) {
    failForGood(neighbourhood.goneStatus(board().localRank(gone)));
  }
}

}  // namespace farandole::collective::shm
