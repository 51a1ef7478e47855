#include "api/handle_table.h"

namespace farandole::api {

void HandleTable::add(const conductor::EntryPtr& entry) {
  const MutexLock lock(mutex_);
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(slots_.size()));
    slots_.emplace_back();
  }
  const std::uint32_t index = free_.back();
  free_.pop_back();
  Slot& slot = slots_[index];
  slot.entry = entry;
  entry->handle = (std::uint64_t{slot.generation} << 32) | (index + 1);
}

const HandleTable::Slot* HandleTable::slotOf(std::uint64_t handle) const {
  const std::uint64_t index = (handle & 0xffffffff) - 1;
  if (index >= slots_.size()) return nullptr;
  const Slot& slot = slots_[index];
  return slot.entry && slot.generation == handle >> 32 ? &slot : nullptr;
}

conductor::EntryPtr HandleTable::find(std::uint64_t handle) const {
  const MutexLock lock(mutex_);
  const Slot* slot = slotOf(handle);
  return slot != nullptr ? slot->entry : nullptr;
}

bool HandleTable::release(std::uint64_t handle) {
  conductor::EntryPtr released;  // destroyed after the lock is gone
  const MutexLock lock(mutex_);
  if (slotOf(handle) == nullptr) return false;
  const auto index = static_cast<std::uint32_t>((handle & 0xffffffff) - 1);
  Slot& slot = slots_[index];
  released = std::move(slot.entry);
  slot.entry = nullptr;
  // A slot whose generations are used up is never used again.
  if (++slot.generation != 0) free_.push_back(index);
  return true;
}

}  // namespace farandole::api
