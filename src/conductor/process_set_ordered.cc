// ProcessSet, the part for operations whose order the caller promises.
#include <algorithm>

#include "conductor/process_set.h"

namespace farandole {

bool ProcessSet::isHeld(const Entry& entry) const {
  return entry.byName && parts_.ordered->channel().holds(entry.request.name, entry.place);
}

bool ProcessSet::advanceOrdered() {
  if (!parts_.ordered->channel().stirred()) return false;
  if (Status status = parts_.ordered->step(ordered_); !status.ok()) {
    observer_.broken(std::move(status));
    return true;
  }
  const auto disputed = parts_.ordered->takeDisputed();
  for (const auto& entry : disputed) takeBack(entry);
  if (ordered_.empty()) return !disputed.empty();
  for (const auto& each : ordered_) {
    if (!each.entry->byName) --orderedInFlight_;
  }
  if (anyDeferred_) {
    const std::lock_guard lock(mutex_);
    for (const auto& each : ordered_) {
      const auto known = names_.find(each.entry->request.name);
      if (known == names_.end() || !known->second.inFlight) {
        publishDeferred(each.entry->request.name);
      }
    }
    anyDeferred_ = !deferred_.empty();
  }
  for (auto& each : ordered_) {
    const bool broken = each.status.code() == Code::kInternal;
    Status status = each.status.ok()
                        ? Status()
                        : fault(each.status.code(), each.status.message(), each.culprit);
    complete(each.entry, status);
    if (broken) observer_.broken(std::move(status));
  }
  ordered_.clear();
  return true;
}

void ProcessSet::retract(const EntryPtr& entry) {
  send(Retract{entry->request.name, inSharedMemory(entry->request)});
}

void ProcessSet::takeBack(const EntryPtr& entry) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = names_.find(entry->request.name);
        known != names_.end() && known->second.inFlight == entry) {
      known->second.disputed = true;
      return retract(entry);
    }
    const auto waiting = deferred_.find(entry->request.name);
    if (waiting == deferred_.end() || std::erase(waiting->second, entry) == 0) return;
    if (waiting->second.empty()) deferred_.erase(waiting);
  }
  parts_.ordered->channel().takenBack(*entry);
}

}  // namespace farandole
