// ShmOperation: what all operations of the shared-memory engine share: the three answers of
// progress(), the budget that bounds one call, and how failure gets in.
//
// An operation is a state machine. advance() does what can be done now; it never waits. Used by one
// thread at a time; owned by the caller; the communicator outlives it.
#pragma once

#include <cstdint>
#include <memory>

#include "collective/communicator.h"
#include "collective/shm/board.h"
#include "collective/shm/tuner.h"

namespace farandole {

// What the operations of one communicator share.
struct ShmContext {
  ShmContext(Neighbourhood& neighbourhood, void* area, std::vector<int> members, int me)
      : board(neighbourhood, area, std::move(members), me), tuner(board) {}
  ShmContext(const ShmContext&) = delete;
  ShmContext& operator=(const ShmContext&) = delete;

  Board board;
  Tuner tuner;
  Status failure;  // the communicator's, once something failed for good
  std::uint64_t zeroCopyBytes = 0;
};

// What is done to the elements; op is never kAverage (a sum with a divisor).
struct Reduction {
  DType dtype = DType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  Scale scale;
};

// What one call of progress() may still move.
class Budget {
 public:
  void refill();
  bool spent() const { return left_ <= 0; }
  void charge(std::size_t bytes) { left_ -= static_cast<std::int64_t>(bytes); }

 private:
  std::int64_t left_ = 0;
};

enum class Advance { kNothing, kSomething, kDone };

class ShmOperation : public Operation {
 public:
  explicit ShmOperation(ShmContext& context) : context_(context) {}
  ShmOperation(const ShmOperation&) = delete;
  ShmOperation& operator=(const ShmOperation&) = delete;

  Progress progress() final;
  bool moved() const final { return moved_; }
  const Status& status() const final { return status_; }

 protected:
  // Does what it can, charging copied bytes to the budget, and stops when that is used up.
  virtual Advance advance(Budget& budget) = 0;

  // Ends this operation; the communicator stays usable.
  void fail(Status status) { status_ = std::move(status); }
  // Ends this operation and every later one: the members no longer agree.
  void failForGood(Status status);

  Board& board() { return context_.board; }
  ShmContext& context() { return context_; }

 private:
  ShmContext& context_;
  bool done_ = false;
  bool moved_ = false;
  Status status_;
};

}  // namespace farandole
