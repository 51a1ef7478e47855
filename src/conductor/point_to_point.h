// PointToPoint: the sends and receives of a member that are under way. They need no agreement: each
// is given to the engine by the next step of the driver.
//
// Any thread adds; the rest is the driver's.
#pragma once

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "collective/communicator.h"
#include "conductor/culprits.h"
#include "conductor/driver_role.h"
#include "conductor/entry.h"
#include "conductor/members.h"

namespace farandole::conductor {

inline bool isPointToPoint(control::Kind kind) {
  return kind == control::Kind::kSend || kind == control::Kind::kReceive;
}

class PointToPoint {
 public:
  struct Finished {
    EntryPtr entry;  // its outcome is complete but for the status
    Status status;
  };

  // The references outlive it.
  PointToPoint(collective::Communicator& communicator, const Members& members, Culprits& culprits)
      : communicator_(communicator), members_(members), culprits_(culprits) {}

  void add(const EntryPtr& entry);
  // Starts what was added and advances what is under way; adds to `finished` what has ended. True
  // if something moved.
  bool advance(TimePoint now, std::vector<Finished>& finished) REQUIRES(driverRole) {
    if (inFlight_.empty() && !anyNew_.load(std::memory_order_acquire)) return false;
    return advanceAll(now, finished);
  }
  bool any() const REQUIRES(driverRole) { return !inFlight_.empty(); }
  // How long the driver may sleep before they must be advanced again.
  Duration nap() const REQUIRES(driverRole);
  // What has not started yet. Any thread.
  std::vector<EntryPtr> takeNew();
  // What has; to be destroyed only when the engine touches no memory of theirs any more.
  struct Transfer {
    EntryPtr entry;
    collective::OperationPtr operation;
    std::unique_ptr<collective::Received> received;
    TimePoint failedAt{};
  };
  std::vector<Transfer> takeInFlight() REQUIRES(driverRole) { return std::exchange(inFlight_, {}); }

 private:
  bool advanceAll(TimePoint now, std::vector<Finished>& finished) REQUIRES(driverRole);
  void start(const EntryPtr& entry) REQUIRES(driverRole);
  void describe(const Transfer& transfer) const;

  collective::Communicator& communicator_;
  const Members& members_;
  Culprits& culprits_;
  std::vector<Transfer> inFlight_ GUARDED_BY(driverRole);

  // So that a driver that finds nothing to do takes no lock to find out.
  std::atomic<bool> anyNew_{false};
  Mutex mutex_;
  std::vector<EntryPtr> new_ GUARDED_BY(mutex_);
};

}  // namespace farandole::conductor
