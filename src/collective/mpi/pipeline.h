// Pipeline: an operation on a sequence of steps, two of which are in flight at a time, so that MPI
// is busy with one while the next is packed or the previous one unpacked.
//
// Steps begin, and their phases follow, in the same order on all members: what they post are
// collectives and messages of one tag, which MPI matches by order.
#pragma once

#include <cstddef>
#include <deque>

#include "collective/mpi/operation.h"

namespace farandole::collective::mpi {

class Pipeline : public MpiOperation {
 public:
  ~Pipeline() override;

 protected:
  using MpiOperation::MpiOperation;

  struct Step {
    std::size_t index = 0;
    int phase = 0;
    Requests requests;
    Scratch scratch;
  };
  virtual std::size_t steps() const = 0;
  // The bytes of all steps together; the same on all members.
  virtual std::size_t allBytes() const = 0;
  // Prepares and posts the first phase. Returns the bytes it moved here.
  virtual std::size_t begin(Step& step) = 0;
  // The requests of step.phase have ended. Posts the next phase and returns false, or finishes the
  // step and returns true. Charges the bytes it moved to the budget.
  virtual bool next(Step& step, Budget& budget) = 0;
  // Called after the last step.
  virtual void finish() {}

  // Memory for a step; false, with the operation failed, if there is none.
  bool takeScratch(Step& step, std::size_t bytes);

 private:
  Advance advance(Budget& budget) final;
  std::size_t underWay() const final;
  bool ok() const { return status().ok(); }

  std::deque<Step> active_;
  std::size_t begun_ = 0;
};

}  // namespace farandole::collective::mpi
