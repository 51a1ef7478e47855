// NetOperation: what all operations of the engine between machines share: the three answers of
// progress(), the budget that bounds one call, and how failure gets in.
//
// An operation is a state machine. advance() does what can be done now; it never waits. Used by one
// thread at a time; owned by the caller; the communicator outlives it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "collective/communicator.h"
#include "collective/link/context.h"
#include "collective/link/traffic.h"

namespace farandole::net {

// What is done to the elements; op is never kAverage (a sum with a divisor).
struct Reduction {
  DType dtype = DType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  Scale scale;
};

// What one call of progress() may still move.
class Budget {
 public:
  bool spent() const { return left_ <= 0; }
  void charge(std::size_t bytes) { left_ -= static_cast<std::int64_t>(bytes); }

 private:
  // About two milliseconds at the pace of main memory.
  std::int64_t left_ = std::int64_t{8} << 20;
};

enum class Advance { kNothing, kSomething, kDone };

class NetOperation : public Operation {
 public:
  // A collective: takes the next number, so it must be made in the order of all members.
  NetOperation(Context& context, std::size_t counters);
  // Point to point: all steps begin with these slots.
  NetOperation(Context& context, std::size_t counters, std::uint64_t slots);
  ~NetOperation() override;
  NetOperation(const NetOperation&) = delete;
  NetOperation& operator=(const NetOperation&) = delete;

  Progress progress() final;
  bool moved() const final { return moved_; }
  const Status& status() const final { return status_; }

 protected:
  // Does what it can, charging the bytes it moves to the budget, and stops when that is used up.
  virtual Advance advance(Budget& budget) = 0;
  // Destroying it before its end harms nobody: the mesh has none of the caller's memory, and no
  // other member counts on it. False unless told otherwise.
  void mayBeDropped(bool harmless) { harmless_ = harmless; }

  // Ends this operation; the communicator stays usable.
  void fail(Status status) { status_ = std::move(status); }
  // Ends this operation and every later one.
  void failForGood(Status status);
  // Scratch memory, or the operation fails for good.
  bool reserve(std::size_t bytes);

  Context& context() const { return context_; }
  Traffic& traffic() const { return *traffic_; }
  int me() const { return context_.me(); }
  int members() const { return context_.size(); }

 private:
  Context& context_;
  const std::shared_ptr<Traffic> traffic_;
  bool done_ = false;
  bool harmless_ = false;
  bool moved_ = false;
  Status status_;
};

}  // namespace farandole::net
