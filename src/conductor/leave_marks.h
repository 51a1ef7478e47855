// LeaveMarks: the leave mark (leave_mark.h) of every rank of the job. Those of this machine lie in
// shared memory; those of other machines are told by the control channels. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "conductor/leave_mark.h"
#include "machine/neighbourhood.h"

namespace farandole {

class LeaveMarks {
 public:
  // localRanks: for every rank its local rank, or -1 if it is on another machine. The neighbourhood
  // outlives this.
  LeaveMarks(Neighbourhood& neighbourhood, std::vector<int> localRanks)
      : neighbourhood_(neighbourhood),
        localRanks_(std::move(localRanks)),
        told_(localRanks_.size()) {}

  std::uint32_t of(std::int32_t rank) const { return slot(rank).load(std::memory_order_acquire); }
  // By and for this rank. The first one stays.
  void leave(std::uint32_t mark) { set(own(), mark); }
  std::uint32_t mine() const { return own().load(std::memory_order_acquire); }
  // What a rank of another machine has said. The first one stays.
  void told(std::int32_t rank, std::uint32_t mark) {
    if (localRanks_[static_cast<std::size_t>(rank)] < 0) set(slot(rank), mark);
  }

 private:
  using Slot = std::atomic<std::uint32_t>;
  static void set(Slot& slot, std::uint32_t mark) {
    std::uint32_t here = kStillHere;
    slot.compare_exchange_strong(here, mark, std::memory_order_release, std::memory_order_relaxed);
  }
  Slot& own() const { return neighbourhood_.header().leaves[neighbourhood_.rank()].left; }
  Slot& slot(std::int32_t rank) const {
    const auto at = static_cast<std::size_t>(rank);
    return localRanks_[at] >= 0 ? neighbourhood_.header().leaves[localRanks_[at]].left : told_[at];
  }

  Neighbourhood& neighbourhood_;
  const std::vector<int> localRanks_;
  mutable std::vector<Slot> told_;
};

}  // namespace farandole
