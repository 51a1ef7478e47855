// LeaveMarks: the leave mark (leave_mark.h) of every rank of the job. Those of this machine lie in
// shared memory; those of other machines are told by the control channels. Thread-safe.
//
// Other ranks can overwrite what lies in shared memory, so a mark counts only if it bears the seal
// of its rank and can be true, and the first one that was seen stays. What this rank has said
// itself it does not read from there.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "conductor/rank_states.h"
#include "machine/neighbourhood.h"

namespace farandole::conductor {

class LeaveMarks {
 public:
  // localRanks: for every rank its local rank, or -1 if it is on another machine. The neighbourhood
  // outlives this.
  LeaveMarks(machine::Neighbourhood& neighbourhood, std::vector<int> localRanks)
      : neighbourhood_(neighbourhood),
        localRanks_(std::move(localRanks)),
        me_(static_cast<std::size_t>(
            std::find(localRanks_.begin(), localRanks_.end(), neighbourhood.rank()) -
            localRanks_.begin())),
        known_(localRanks_.size()) {}

  // Of that rank on this machine; -1: it is on another one.
  int localRank(std::int32_t rank) const { return localRanks_[static_cast<std::size_t>(rank)]; }

  std::uint32_t of(std::int32_t rank) const {
    const auto at = static_cast<std::size_t>(rank);
    const std::uint32_t known = known_[at].load(std::memory_order_acquire);
    if (known != kStillHere || at == me_ || localRanks_[at] < 0) return known;
    const auto said = word(localRanks_[at]).load(neighbourhood_.epoch(), localRanks_[at]);
    if (said && canBe(*said)) set(at, static_cast<std::uint32_t>(*said));
    return known_[at].load(std::memory_order_acquire);
  }
  // By and for this rank. The first one stays.
  void leave(std::uint32_t mark) {
    if (!set(me_, mark)) return;
    word(neighbourhood_.rank()).store(mark, neighbourhood_.epoch(), neighbourhood_.rank());
  }
  std::uint32_t mine() const { return known_[me_].load(std::memory_order_acquire); }
  // What a rank of another machine has said. The first one stays.
  void note(std::int32_t rank, std::uint32_t mark) {
    const auto at = static_cast<std::size_t>(rank);
    if (localRanks_[at] < 0 && canBe(mark)) set(at, mark);
  }

 private:
  bool set(std::size_t at, std::uint32_t mark) const {
    std::uint32_t here = kStillHere;
    return known_[at].compare_exchange_strong(here, mark, std::memory_order_release,
                                              std::memory_order_relaxed);
  }
  machine::SealedWord& word(int localRank) const {
    return neighbourhood_.header().leaves[localRank].mark;
  }
  // Whoever is blamed is a rank of this job.
  bool canBe(std::uint64_t mark) const {
    return mark == kLeftInGoodOrder ||
           (mark > kLeftInGoodOrder && mark < gaveUpBecauseOf(0) + localRanks_.size());
  }

  machine::Neighbourhood& neighbourhood_;
  const std::vector<int> localRanks_;
  const std::size_t me_;
  mutable std::vector<std::atomic<std::uint32_t>> known_;  // by rank: what was seen or told first
};

}  // namespace farandole::conductor
