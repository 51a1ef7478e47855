// Stalls: notices operations that some members have submitted and others have not, and batches that
// a stopped member holds up. It warns of them, and ends them after the stall limit.
//
// Called by the driver only.
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
  // What the set is doing. Pointers may be null.
  struct Situation {
    TimePoint now;
    // When this process continued after it had been stopped; TimePoint{} if it never was.
    TimePoint resumed{};
    std::optional<TimePoint> runsSince{};  // when the batch that runs began
    const OrderedOperations* ordered = nullptr;
    const control::Sequencer* sequencer = nullptr;  // on member 0
    // Returns the name of an operation of this member that was submitted before that time.
    std::function<std::optional<std::string>(TimePoint then)> submittedBefore{};
  };
  // What has to be done. At most one of them is set.
  struct Verdict {
    Status broken;                        // not ok: the job cannot go on; says why
    std::optional<control::Abort> abort;  // to be appended to the log
  };

  Stalls(SetObserver& observer, const Members& members) : observer_(observer), members_(members) {}

  // Called several times a second. It looks only now and then.
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
  std::unordered_map<std::string, TimePoint> warnings_;  // by name: when it was warned of last
  TimePoint orderedWarning_{};
};

}  // namespace farandole::conductor
