// Culprits: who is to blame when an operation fails or a member leaves. Whoever notices first is
// seldom the one: ranks give up because of each other.
//
// The driver's alone.
#pragma once

#include <optional>

#include "base/clock.h"
#include "base/status.h"
#include "conductor/members.h"
#include "conductor/set_observer.h"

namespace farandole::conductor {

class Culprits {
 public:
  // The references outlive it.
  Culprits(SetObserver& observer, const Members& members)
      : observer_(observer), members_(members) {}

  // Makes the status of a failed operation name the one to blame. An engine sees only that a
  // connection ended; whose fault that was is known a moment later: false until then. failedAt:
  // when it was first asked, TimePoint{} before that.
  bool find(Status& status, TimePoint& failedAt, TimePoint now) REQUIRES(driverRole);

  struct Leaving {
    Status status;
    std::int32_t culprit = -1;  // rank
  };
  // Why that member, which is needed here, has left; nullopt: the true cause is not known yet.
  std::optional<Leaving> leavingOf(int member) REQUIRES(driverRole);

 private:
  SetObserver& observer_;
  const Members& members_;
};

}  // namespace farandole::conductor
