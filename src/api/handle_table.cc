#include "api/handle_table.h"

namespace farandole::api {

void HandleTable::add(const conductor::EntryPtr& entry) {
  const MutexLock lock(mutex_);
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(holders_.size()));
    holders_.emplace_back();
  }
  const std::uint32_t index = free_.back();
  free_.pop_back();
  Holder& holder = holders_[index];
  holder.entry = entry;
  entry->handle = (std::uint64_t{holder.generation} << 32) | (index + 1);
}

const HandleTable::Holder* HandleTable::holderOf(std::uint64_t handle) const {
  const std::uint64_t index = (handle & 0xffffffff) - 1;
  if (index >= holders_.size()) return nullptr;
  const Holder& holder = holders_[index];
  return holder.entry && holder.generation == handle >> 32 ? &holder : nullptr;
}

conductor::EntryPtr HandleTable::find(std::uint64_t handle) const {
  const MutexLock lock(mutex_);
  const Holder* holder = holderOf(handle);
  return holder != nullptr ? holder->entry : nullptr;
}

bool HandleTable::release(std::uint64_t handle) {
  conductor::EntryPtr released;  // destroyed after the lock is gone
  const MutexLock lock(mutex_);
  if (holderOf(handle) == nullptr) return false;
  const auto index = static_cast<std::uint32_t>((handle & 0xffffffff) - 1);
  Holder& holder = holders_[index];
  released = std::move(holder.entry);
  holder.entry = nullptr;
  // A holder whose generations are used up is never used again.
  if (++holder.generation != 0) free_.push_back(index);
  return true;
}

}  // namespace farandole::api
