#include "collective/hierarchy/pipeline.h"

#include <algorithm>
#include <string>
#include <utility>

namespace farandole::collective::hierarchy {
namespace {

// Chunks an operation is cut into if their size allows.
constexpr std::size_t kChunks = 8;

Status check(const HierarchyContext& context) {
  const Machines& machines = context.machines;
  const auto wrong = [](const char* what) {
    return Status::internal(std::string("the hierarchy of this set is inconsistent: ") + what);
  };
  if (!machines.valid()) return wrong("machines must be numbered 0 … without gaps");
  if (!context.local || context.local->size() != static_cast<int>(machines.neighbours().size()) ||
      context.local->member() != machines.local()) {
    return wrong("the communicator inside the machine has other members");
  }
  if (machines.carries() != (context.between != nullptr) ||
      (context.between && (context.between->size() != machines.count() ||
                           context.between->member() != machines.mine()))) {
    return wrong("the communicator between machines has other members");
  }
  if (!context.flat || context.flat->size() != machines.members() ||
      context.flat->member() != machines.me()) {
    return wrong("the communicator of all members has other members");
  }
  return {};
}

}  // namespace

HierarchyContext::HierarchyContext(HierarchyParts parts)
    : machines(std::move(parts.machineOf), parts.me),
      local(std::move(parts.local)),
      between(std::move(parts.between)),
      flat(std::move(parts.flat)),
      tuning(parts.tuning),
      buffers(std::move(parts.allocate), std::move(parts.free)),
      failure(check(*this)) {}

Cut cutOf(const HierarchyContext& context, std::size_t bytes) {
  const HierarchyTuning& tuning = context.tuning;
  const std::size_t chunk =
      std::clamp(bytes / kChunks, std::max<std::size_t>(1, tuning.smallestChunk),
                 std::max(tuning.smallestChunk, tuning.largestChunk));
  Cut cut;
  cut.chunkBytes = std::min(chunk, bytes);
  cut.chunks = static_cast<std::int64_t>(bytes / chunk + (bytes % chunk != 0 ? 1 : 0));
  cut.chunks = std::max<std::int64_t>(1, cut.chunks);
  cut.slices = bytes < tuning.oneCarrierBelow ? 1 : context.machines.slices();
  return cut;
}

// Small chunks may pass through all stages in one call when nothing is missing.
Pipeline::Pipeline(HierarchyContext& context, const Cut& cut)
    : EngineOperation(context),
      chunks_(cut.chunks),
      carrier_(context.machines.local() < cut.slices),
      steps_(static_cast<int>(std::clamp<std::size_t>(
          std::size_t{Budget::kBytes} / std::max<std::size_t>(1, cut.chunkBytes), 2, 64))) {}

std::byte* Pipeline::buffer(Buffer which, std::size_t bytes) {
  std::byte* memory = context().buffers.get(which, bytes);
  if (memory == nullptr) {
    failForGood(Status::outOfMemory("no memory for " + std::to_string(bytes) +
                                    " bytes of intermediate results between machines"));
  }
  return memory;
}

Advance Pipeline::turn() {
  bool something = false;
  for (int step = 0; step < steps_; ++step) {
    const bool inside = advanceLocal();
    const bool outside = !failed() && advanceTravel();
    if (failed()) break;
    if (lasts_ == chunks_) return Advance::kDone;
    if (!inside && !outside) break;
    something = true;
  }
  if (failed()) {
    inside_ = {};
    outside_ = {};
  }
  return something ? Advance::kSomething : Advance::kNothing;
}

Progress Pipeline::drive(InFlight& stage, bool& something) {
  if (stage.operation) {
    const Progress progress = stage.operation->progress();
    if (progress == Progress::kFailed) {
      failForGood(stage.operation->status());
      return progress;
    }
    if (progress == Progress::kPending) {
      something = something || stage.operation->moved();
      return progress;
    }
  }
  stage = {};
  something = true;
  return Progress::kDone;
}

// One stage inside the machine; true if anything moved.
bool Pipeline::advanceLocal() {
  if (lasts_ == chunks_) return false;
  const bool isFirst = firsts_ < chunks_ && firsts_ <= lasts_ + kAhead;
  bool something = false;
  if (!inside_.busy) {
    if (!isFirst && lasts_ == travels_) return false;
    inside_.busy = something = true;
    inside_.operation = isFirst ? first(firsts_) : last(lasts_);
    if (failed()) return false;
  }
  if (drive(inside_, something) == Progress::kDone) {
    if (isFirst) {
      ++firsts_;
    } else {
      ended(lasts_++);
    }
  }
  return something;
}

bool Pipeline::advanceTravel() {
  bool something = false;
  if (!outside_.busy) {
    if (travels_ == firsts_) return false;
    outside_.busy = something = true;
    outside_.operation = travel(travels_);
    if (failed()) return false;
  }
  if (drive(outside_, something) == Progress::kDone) travelled(travels_++);
  return something;
}

}  // namespace farandole::collective::hierarchy
