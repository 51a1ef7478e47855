// Stalls: notices what some members have submitted and others have not, and batches that a stopped
// member holds up; warns of them, and ends them when the limit is over.
//
// The driver's alone.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/clock.h"
#include "base/status.h"
#include "conductor/members.h"
#include "conductor/ordered_operations.h"
#include "conductor/set_observer.h"
#include "control/messages.h"
#include "control/sequencer.h"

namespace farandole::conductor {

class Stalls {
 public:
  struct Limits {
    Duration warnAfter{};
    Duration endAfter{};  // zero: never
  };
  // What the set does. Pointers may be null.
  struct Situation {
    TimePoint now;
    TimePoint
        resumed{};  // when this process ran again after it had been stopped; never: TimePoint{}
    std::optional<TimePoint> runsSince{};  // a batch
    const OrderedOperations* ordered = nullptr;
    const control::Sequencer* sequencer = nullptr;  // on member 0
    // The name of an operation of this member that was submitted before then.
    std::function<std::optional<std::string>(TimePoint then)> submittedBefore{};
  };
  // What has to be done: at most one of them.
  struct Verdict {
    Status broken;                        // not ok: the job cannot go on, and why
    std::optional<control::Abort> abort;  // to be said in the log
  };

  Stalls(SetObserver& observer, const Members& members) : observer_(observer), members_(members) {}

  // Several times a second; looks now and then.
  Verdict check(const Situation& situation, Limits limits) REQUIRES(driverRole);

 private:
  Status stuck(const Situation& situation, Duration endAfter) REQUIRES(driverRole);
  Status orderedStall(const Situation& situation, Limits limits);
  Status silentSequencer(const Situation& situation, Duration endAfter) const;
  std::optional<control::Abort> overdue(const Situation& situation, Duration endAfter) const;
  void warn(const Situation& situation, Duration warnAfter);

  SetObserver& observer_;
  const Members& members_;
  TimePoint lastCheck_;
  std::unordered_map<std::string, TimePoint> warnings_;  // by name: the last one
  TimePoint orderedWarning_{};
};

}  // namespace farandole::conductor
