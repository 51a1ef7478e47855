// ShmOperation: what all operations of the shared-memory engine share (collective/operation.h says
// what those of all engines do).
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "collective/operation.h"
#include "collective/shm/board.h"
#include "collective/shm/tuner.h"

namespace farandole::collective::shm {

// What the operations of one communicator share.
struct ShmContext {
  ShmContext(machine::Neighbourhood& neighbourhood, void* area, std::vector<int> members, int me)
      : board(neighbourhood, area, std::move(members), me), tuner(board) {}
  ShmContext(const ShmContext&) = delete;
  ShmContext& operator=(const ShmContext&) = delete;

  Board board;
  Tuner tuner;
  Status failure;  // the communicator's, once something failed for good
  std::uint64_t zeroCopyBytes = 0;
};

class ShmOperation : public EngineOperation<ShmOperation, ShmContext> {
 protected:
  explicit ShmOperation(ShmContext& context) : EngineOperation(context) {}

  // Does what it can, charging copied bytes to the budget, and stops when that is used up.
  virtual Advance advance(Budget& budget) = 0;

  Board& board() { return context().board; }

 private:
  friend EngineOperation;
  Advance turn();
  // An operation that finds nothing to do asks whether a member is missing.
  void lookForTheMissing();
};

}  // namespace farandole::collective::shm
