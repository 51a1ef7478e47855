// Leavers: which members can do nothing more for what is in flight here.
//
// The driver's alone.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "conductor/members.h"
#include "conductor/set_observer.h"
#include "control/control_channel.h"

namespace farandole::conductor {

class Leavers {
 public:
  // The references outlive it. oneMachine: all members are on this one.
  Leavers(control::ControlChannel& control, const Members& members, SetObserver& observer,
          bool oneMachine)
      : control_(control), observer_(observer), oneMachine_(oneMachine) {
    for (int member = 0; member < members.size(); ++member) {
      if (member != members.me()) others_.push_back({member, members.rank(member), false});
    }
  }

  // At the end of a step that has found nothing to do: calls `end` for such members until it says
  // true. running: of the log, the position behind the batch that runs, if one does.
  template <typename End>
  bool any(std::optional<std::uint64_t> running, End&& end) const REQUIRES(driverRole) {
    for (const Other& other : others_) {
      if (isOutOfReach(other, running) && end(other.member)) return true;
    }
    return false;
  }
  // Behind that: looks whose processes have ended, which counts from the next step on.
  void lookForEnds() REQUIRES(driverRole) {
    // Between machines the last words may still be on their way, and connections tell the end.
    if (!oneMachine_) return;
    const std::uint32_t ends = observer_.ends();
    if (ends == endsSeen_) return;
    endsSeen_ = ends;
    for (Other& other : others_) other.seenGone = observer_.gone(other.rank);
  }

 private:
  struct Other {
    int member = 0;
    std::int32_t rank = 0;
    bool seenGone = false;  // its process had ended before this step
  };
  bool isOutOfReach(const Other& other, std::optional<std::uint64_t> running) const {
    // What it has executed, this rank may still have to; what lies beyond can never run.
    if (const auto left = control_.leftAt(other.member)) {
      if (running ? *left < *running : control_.position() >= *left) return true;
    }
    // Whatever it says, or does not say: a process that has ended submits, decides and executes
    // nothing. If that was known before this step, the step has read all of the log that it may
    // have executed, and has found nothing to do. What runs is the engine's to judge: it knows for
    // whom it waits.
    return other.seenGone && !running;
  }

  control::ControlChannel& control_;
  SetObserver& observer_;
  const bool oneMachine_;
  std::uint32_t endsSeen_ = 0;
  std::vector<Other> others_;
};

}  // namespace farandole::conductor
