#include "collective/shm/shared_areas.h"

#include <algorithm>
#include <new>
#include <string>
#include <thread>

#include "collective/shm/layout.h"

namespace farandole::collective::shm {
namespace {

// So many areas may wait for slower members before the next one is made.
constexpr std::size_t kMostLate = 2;
// A member that is away for longer (it computes, or never leaves) delays no other member.
constexpr Duration kJoinTimeout = std::chrono::seconds(1);
constexpr Duration kGlance = std::chrono::microseconds(200);

// The place of the count behind the area.
constexpr std::size_t countAt(std::size_t bytes) {
  return (bytes + kLinePair - 1) / kLinePair * kLinePair;
}
constexpr std::size_t withCount(std::size_t bytes) { return countAt(bytes) + kLinePair; }

}  // namespace

SharedAreas::Use::~Use() { areas_.leave(*this); }

Result<SharedAreas::UsePtr> SharedAreas::make(std::size_t bytes, int members) {
  collect();
  awaitSlower();
  Result<void*> memory = neighbourhood_.arena().allocate(withCount(bytes));
  FARANDOLE_RETURN_IF_ERROR(memory.status());
  auto* const data = static_cast<std::byte*>(*memory);
  auto* const left = new (data + countAt(bytes)) Use::Count(0);
  const MutexLock lock(mutex_);
  areas_.push_back({data, left, static_cast<std::uint32_t>(members), false});
  return UsePtr(new Use(*this, data, *left));
}

Result<SharedAreas::UsePtr> SharedAreas::join(int firstLocalRank, std::uint64_t offset,
                                              std::size_t bytes) {
  std::byte* const data = neighbourhood_.at(firstLocalRank, offset, withCount(bytes));
  if (data == nullptr || offset % kLinePair != 0) {
    return Status::internal("local rank " + std::to_string(firstLocalRank) +
                            " announced shared memory outside of its arena");
  }
  auto* const left = std::launder(reinterpret_cast<Use::Count*>(data + countAt(bytes)));
  return UsePtr(new Use(*this, data, *left));
}

void SharedAreas::leave(const Use& use) {
  {
    const MutexLock lock(mutex_);
    for (Area& area : areas_) {
      if (area.data != use.data_) continue;
      area.leftHere = true;
      ++late_;
    }
  }
  // Release: everything this rank has done there is over when the first member sees the count. The
  // memory may have another owner at once: it is not even read again.
  use.left_.fetch_add(1, std::memory_order_release);
  collect();
}

void SharedAreas::collect() {
  if (late_.load(std::memory_order_relaxed) == 0) return;
  const MutexLock lock(mutex_);
  std::erase_if(areas_, [&](const Area& area) {
    if (!area.leftHere || area.left->load(std::memory_order_acquire) < area.members) return false;
    neighbourhood_.arena().free(area.data);
    --late_;
    return true;
  });
}

void SharedAreas::awaitSlower() {
  const Deadline deadline = Deadline::after(kJoinTimeout);
  while (late_.load(std::memory_order_relaxed) >= kMostLate && !deadline.passed() &&
         !neighbourhood_.failed()) {
    std::this_thread::sleep_for(kGlance);
    collect();
  }
}

}  // namespace farandole::collective::shm
