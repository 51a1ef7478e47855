// LinkOperation: what all operations of the engine between machines share (collective/operation.h
// says what those of all engines do).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "collective/link/context.h"
#include "collective/link/traffic.h"
#include "collective/operation.h"

namespace farandole::collective::link {

class LinkOperation : public EngineOperation<LinkOperation, Context> {
 public:
  ~LinkOperation() override;

 protected:
  // A collective: takes the next number, so it must be made in the order of all members.
  LinkOperation(Context& context, std::size_t counters);
  // Point to point: all steps begin with these slots.
  LinkOperation(Context& context, std::size_t counters, std::uint64_t slots);

  // Does what it can, charging the bytes it moves to the budget, and stops when that is used up.
  virtual Advance advance(Budget& budget) = 0;
  // Destroying it before its end does no harm: the mesh has none of the caller's memory, and no
  // other member depends on it. False by default.
  void mayBeDropped(bool harmless) { harmless_ = harmless; }
  // Scratch memory, or the operation fails for good.
  bool reserve(std::size_t bytes);

  Traffic& traffic() const { return *traffic_; }
  int me() const { return context().me(); }
  int members() const { return context().size(); }

 private:
  friend EngineOperation;
  Advance turn();

  const std::shared_ptr<Traffic> traffic_;
  bool harmless_ = false;
};

}  // namespace farandole::collective::link
