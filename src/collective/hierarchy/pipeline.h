// Pipeline: an operation whose chunks pass one after the other through three stages.
//
//   first    inside the machine: what the carriers need comes to them
//   travel   between the machines: carriers only
//   last     inside the machine: what came from the others goes to everybody
//
// While chunk k travels, later chunks take their first stage and earlier ones their last. The local
// communicator allows one operation at a time, in the same order on all members, so the stages
// inside the machine alternate in an order that depends on the number of chunks only: kAhead firsts
// lead, then last and first take turns. Operations between machines follow in the order of chunks.
// There is no circular wait: a stage waits only for stages of the same or earlier chunks.
//
// Used by one thread at a time; owned by the caller; the communicator outlives it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/rounding.h"
#include "collective/hierarchy/buffers.h"
#include "collective/hierarchy/hierarchy.h"
#include "collective/hierarchy/machines.h"
#include "collective/operation.h"

namespace farandole::collective::hierarchy {

// What the operations of one communicator share.
struct HierarchyContext {
  explicit HierarchyContext(HierarchyParts parts);

  const Machines machines;
  const std::unique_ptr<Communicator> local;
  const std::unique_ptr<Communicator> between;  // null if this member carries nothing
  const std::unique_ptr<Communicator> flat;
  const HierarchyTuning tuning;
  Buffers buffers;
  Status failure;  // the status of the first operation that failed: every later one fails with it
};

// How an operation of that many bytes is cut; the same on all members.
struct Cut {
  std::size_t chunkBytes = 0;
  std::int64_t chunks = 1;
  int slices = 1;  // carriers that travel
};
Cut cutOf(const HierarchyContext& context, std::size_t bytes);

class Pipeline : public EngineOperation<Pipeline, HierarchyContext> {
 public:
  // Chunks that may have taken their first stage before the oldest has taken its last. One would
  // do in a steady flow; the second covers for members that are late.
  static constexpr std::int64_t kAhead = 2;
  // Chunks in flight: buffers that a chunk needs from first to last are rings of this length.
  static constexpr std::int64_t kRing = kAhead + 1;

  Pipeline(HierarchyContext& context, const Cut& cut);

  Duration nap() const final {
    return std::min(inside_.operation ? inside_.operation->nap() : Duration::max(),
                    outside_.operation ? outside_.operation->nap() : Duration::max());
  }

 protected:
  // Start a stage of a chunk; null if this member has nothing to do in it.
  virtual OperationPtr first(std::int64_t chunk) = 0;
  virtual OperationPtr travel(std::int64_t chunk) = 0;
  virtual OperationPtr last(std::int64_t chunk) = 0;
  // What is to be done when a stage is over, before the next begins; a chunk's worth of copying.
  virtual void travelled(std::int64_t) {}
  virtual void ended(std::int64_t) {}

  // A scratch buffer; null, with the operation failed for good, if there is no memory.
  std::byte* buffer(Buffer which, std::size_t bytes);

  // A ring of buffers: the bytes of one, rounded up to whole cache lines, and where a chunk's lies.
  // Only carriers need them.
  std::size_t ringSlot(std::size_t bytes) const { return carrier_ ? roundUp(bytes, 64) : 0; }
  static std::byte* ring(std::byte* memory, std::size_t slot, std::int64_t chunk) {
    return memory + static_cast<std::size_t>(chunk % kRing) * slot;
  }

  std::int64_t chunks() const { return chunks_; }
  const Machines& machines() const { return context().machines; }
  Communicator& local() { return *context().local; }

 private:
  friend EngineOperation;
  Advance turn();
  bool advanceLocal();
  bool advanceTravel();
  bool failed() const { return !status().ok(); }

  const std::int64_t chunks_;
  const bool carrier_;  // this member carries a slice of this operation
  const int steps_;     // steps in one call of progress()

  // How many chunks are through with each stage.
  std::int64_t firsts_ = 0;
  std::int64_t travels_ = 0;
  std::int64_t lasts_ = 0;
  // The operations in flight: at most one inside the machine and one between machines. `operation`
  // is null if the stage is idle, or if this member has nothing to do in it.
  struct InFlight {
    bool busy = false;
    OperationPtr operation;
  };
  InFlight inside_;
  InFlight outside_;
  // Advances the operation and forgets it when it has ended: kDone if the stage is idle afterwards.
  Progress drive(InFlight& stage, bool& something);
};

}  // namespace farandole::collective::hierarchy
