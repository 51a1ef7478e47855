// SetObserver: what a process set tells the conductor, and what it asks of it. Called by the
// driver, without the set's lock held.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "conductor/driver_role.h"
#include "conductor/entry.h"
#include "conductor/execution.h"

namespace farandole::conductor {

class SetObserver {
 public:
  virtual ~SetObserver() = default;
  // The entry's outcome is final.
  virtual void completed(const EntryPtr& entry) REQUIRES(driverRole) = 0;
  virtual void ran(const Execution& execution) REQUIRES(driverRole) = 0;
  // The job cannot go on.
  virtual void broken(Status status) REQUIRES(driverRole) = 0;
  // The set has failed because that rank has left.
  virtual void lostTo(std::int32_t) REQUIRES(driverRole) {}

  // Who is to blame for that rank's leaving: itself, or another one because of which it gave up.
  // Not certain while this rank is about to hear of that one itself.
  struct Blame {
    std::int32_t rank = -1;
    bool certain = true;
  };
  virtual Blame blameFor(std::int32_t rank) REQUIRES(driverRole) { return {rank, true}; }
  // True if that rank's process is known to be stopped.
  virtual bool stopped(std::int32_t) REQUIRES(driverRole) { return false; }
  // True if that rank's process has ended, on this machine: it writes no more into shared memory,
  // whatever it has said before.
  virtual bool gone(std::int32_t) REQUIRES(driverRole) { return false; }
  // Of how many ranks, of this set or not, that is true.
  virtual std::uint32_t ends() REQUIRES(driverRole) { return 0; }
};

}  // namespace farandole::conductor
