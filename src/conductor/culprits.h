// Culprits: finds the rank that is to blame when an operation fails or a member leaves. It is
// seldom the rank that was noticed first, because ranks give up because of each other.
//
// Called by the driver only.
#pragma once

#include <optional>

#include "base/clock.h"
#include "base/status.h"
#include "conductor/members.h"
#include "conductor/set_observer.h"

namespace farandole::conductor {

class Culprits {
 public:
  // The references outlive this object.
  Culprits(SetObserver& observer, const Members& members)
      : observer_(observer), members_(members) {}

  // Makes the status of a failed operation name the rank that is to blame. An engine sees only that
  // a connection has ended; the cause is known a moment later. Returns false until then. failedAt:
  // when this was first asked; TimePoint{} before.
  bool find(Status& status, TimePoint& failedAt, TimePoint now) REQUIRES(driverRole);

  struct Leaving {
    Status status;
    std::int32_t culprit = -1;  // rank
  };
  // Returns why that member, which is needed here, has left; nullopt while the cause is not known
  // yet.
  std::optional<Leaving> leavingOf(int member) REQUIRES(driverRole);

 private:
  SetObserver& observer_;
  const Members& members_;
};

}  // namespace farandole::conductor
