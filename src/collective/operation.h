// EngineOperation: the skeleton of the operations of all engines: the three answers of progress(),
// the budget that bounds one call, and how failure gets in.
//
// An operation is a state machine. progress() gives the engine its turn, which does what can be
// done now and never waits. Used by one thread at a time; owned by the caller; the communicator,
// and with it the context, outlives it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "collective/communicator.h"

namespace farandole::collective {

// What is done to the elements; op is never kAverage (a sum with a divisor).
struct Reduction {
  DType dtype = DType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  Scale scale;
};

// What a set of so many members computes when it is asked for op: an average is a sum that is
// divided, and the Adasum of one member is the member itself.
inline Reduction reductionOf(DType dtype, ReduceOp op, Scale scale, int members) {
  if (op == ReduceOp::kAverage) scale.divisor *= members;
  const bool sums = op == ReduceOp::kAverage || (op == ReduceOp::kAdasum && members == 1);
  return {dtype, sums ? ReduceOp::kSum : op, scale};
}

// What one call of progress() may still move.
class Budget {
 public:
  // About two milliseconds at the speed of main memory.
  static constexpr std::int64_t kBytes = std::int64_t{8} << 20;

  bool spent() const { return left_ <= 0; }
  void charge(std::size_t bytes) { left_ -= static_cast<std::int64_t>(bytes); }

 private:
  std::int64_t left_ = kBytes;
};

enum class Advance { kNothing, kSomething, kDone };

// Engine is the class derived from this one. It has a function `Advance turn()`, which this class
// may call, and which sets the status with fail or failForGood if the operation cannot go on.
// Context is what the engine's operations share; its member `Status failure` is the communicator's:
// once it is set, every operation fails with it.
template <typename Engine, typename Context>
class EngineOperation : public Operation {
 public:
  EngineOperation(const EngineOperation&) = delete;
  EngineOperation& operator=(const EngineOperation&) = delete;

  Progress progress() final {
    if (done_) return Progress::kDone;
    if (!context_.failure.ok()) fail(context_.failure);
    if (!status_.ok()) return Progress::kFailed;
    const Advance result = static_cast<Engine*>(this)->turn();
    moved_ = result != Advance::kNothing;
    if (!status_.ok()) return Progress::kFailed;
    done_ = result == Advance::kDone;
    return done_ ? Progress::kDone : Progress::kPending;
  }
  bool moved() const final { return moved_; }
  const Status& status() const final { return status_; }

 protected:
  explicit EngineOperation(Context& context) : context_(context) {}

  // Ends this operation; the communicator stays usable. The first reason counts.
  void fail(Status status) {
    if (status_.ok()) status_ = std::move(status);
  }
  // Ends this operation and every later one: the members no longer agree.
  void failForGood(Status status) {
    if (context_.failure.ok()) context_.failure = status;
    fail(std::move(status));
  }
  // Neither done nor failed.
  bool unfinished() const { return !done_ && status_.ok(); }

  Context& context() const { return context_; }

 private:
  Context& context_;
  bool done_ = false;
  bool moved_ = false;
  Status status_;
};

// An operation that has ended before it began: done, or failed if the status is not ok.
class EndedOperation final : public Operation {
 public:
  explicit EndedOperation(Status status) : status_(std::move(status)) {}
  Progress progress() override { return status_.ok() ? Progress::kDone : Progress::kFailed; }
  bool moved() const override { return false; }
  const Status& status() const override { return status_; }

 private:
  const Status status_;
};
inline OperationPtr makeEnded(Status status) {
  return std::make_unique<EndedOperation>(std::move(status));
}

}  // namespace farandole::collective
