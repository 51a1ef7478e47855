// The conductor's view of its machine: MachineBell and MachineRankStates are Bell and RankStates as the
// neighbourhood's shared memory has them.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "conductor/bell.h"
#include "conductor/leave_marks.h"
#include "conductor/rank_states.h"
#include "machine/neighbourhood.h"

namespace farandole::conductor {

class MachineBell final : public Bell {
 public:
  // The neighbourhood outlives it.
  explicit MachineBell(machine::Neighbourhood& neighbourhood) : neighbourhood_(neighbourhood) {}

  void ring() override { neighbourhood_.ring(neighbourhood_.rank()); }
  std::uint32_t announceSleep() override { return neighbourhood_.announceSleep(); }
  bool sleep(std::uint32_t seen, Deadline deadline) override {
    return neighbourhood_.sleep(seen, deadline);
  }
  void awake() override { neighbourhood_.awake(); }
  void fail(Status status) override { neighbourhood_.fail(std::move(status)); }
  bool failed() const override { return neighbourhood_.failed(); }
  Status failure() const override { return neighbourhood_.failure(); }

 private:
  machine::Neighbourhood& neighbourhood_;
};

class MachineRankStates final : public RankStates {
 public:
  // The references outlive it. stopped: as RankStates::stopped; empty: never.
  MachineRankStates(const machine::Neighbourhood& neighbourhood, LeaveMarks& marks,
                    std::function<bool(std::int32_t)> stopped)
      : neighbourhood_(neighbourhood), marks_(marks), stopped_(std::move(stopped)) {}

  std::uint32_t markOf(std::int32_t rank) const override { return marks_.of(rank); }
  void leave(std::uint32_t mark) override { marks_.leave(mark); }
  bool gone(std::int32_t rank) const override {
    const int local = marks_.localRank(rank);
    return local >= 0 && neighbourhood_.isGone(local);
  }
  std::uint32_t ends() const override { return neighbourhood_.goneCount(); }
  bool stopped(std::int32_t rank) const override { return stopped_ && stopped_(rank); }

 private:
  const machine::Neighbourhood& neighbourhood_;
  LeaveMarks& marks_;
  const std::function<bool(std::int32_t)> stopped_;
};

}  // namespace farandole::conductor
