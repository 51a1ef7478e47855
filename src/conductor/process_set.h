// ProcessSet: one set of ranks, as one of them sees it: brings what is submitted to the sequencer,
// what the log says to the engine, and what has ended to the conductor. The parts have classes of
// their own: NameTable, Sequencing (on member 0), BatchRunner, PointToPoint, OrderedOperations, and for
// what goes wrong Leavers, Culprits and Stalls.
//
// Threads. Any thread may call submit, cancel and counters (mutex_); the rest is the driver's, as the
// annotations say. Several sets never wait for each other: each step does what can be done now and
// returns.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "collective/communicator.h"
#include "conductor/batch_runner.h"
#include "conductor/culprits.h"
#include "conductor/driver_role.h"
#include "conductor/entry.h"
#include "conductor/leavers.h"
#include "conductor/members.h"
#include "conductor/name_table.h"
#include "conductor/ordered_operations.h"
#include "conductor/point_to_point.h"
#include "conductor/sequencing.h"
#include "conductor/set_observer.h"
#include "conductor/stalls.h"
#include "conductor/submission_outbox.h"
#include "control/control_channel.h"
#include "control/sequencer.h"

namespace farandole::conductor {

class ProcessSet {
 public:
  struct Components {
    // What control and communicator live in; given up after them, and after everything that runs.
    std::shared_ptr<void> memory;
    std::int32_t id = 0;
    std::vector<std::int32_t> ranks;  // global, in the order of the set
    int me = 0;                       // index of this rank
    std::vector<std::string> hosts;   // of the members
    std::unique_ptr<control::ControlChannel> control;
    std::unique_ptr<collective::Communicator> communicator;
    std::unique_ptr<control::Sequencer> sequencer;  // on member 0 only
    std::unique_ptr<OrderedOperations> ordered;     // null: ordered operations are like all others
    bool betweenMachines = false;
    // True if that memory lies in this rank's arena; any thread.
    std::function<bool(const void*, std::size_t)> isShared;
    // Makes sure that the engine's operations touch no memory any more, when they are given up. May
    // be empty.
    std::function<void(const Status&)> endTraffic;
  };
  ProcessSet(Components components, SetObserver& observer);

  std::int32_t id() const { return id_; }
  const std::vector<std::int32_t>& ranks() const { return members_.ranks(); }
  int me() const { return members_.me(); }
  int size() const { return members_.size(); }
  control::ControlChannel& control() { return *control_; }
  collective::Communicator& communicator() { return *communicator_; }

  // All or nothing; kDuplicateName names the first offender.
  Status submit(std::span<const EntryPtr> entries);
  // Asks for the entry to be withdrawn; it ends as kCancelled unless it runs first.
  void cancel(const EntryPtr& entry);
  bool anythingInFlight() const { return inFlight_ > 0; }

  // Does what can be done now. True if something moved.
  bool step(TimePoint now) REQUIRES(driverRole);
  // When step has work again although nothing comes from outside.
  std::optional<TimePoint> due() const REQUIRES(driverRole);
  // Whether an operation is under way whose next piece comes over the network.
  bool awaitsNetwork() const REQUIRES(driverRole) {
    return (runner_.runs() && betweenMachines_) || (ordered_ && ordered_->channel().busy());
  }
  // Whether all members have submitted something that is not done yet.
  bool runs() const REQUIRES(driverRole) { return runner_.runs(); }
  // How long the driver may sleep before the engine must be looked at again.
  Duration nap() const REQUIRES(driverRole) { return std::min(runner_.nap(), pointToPoint_.nap()); }
  // Warns about, or ends, what some ranks have not submitted. ends = 0: never.
  // resumed: when this process ran again after it had been stopped; what is late counts from there;
  // never: TimePoint{}.
  void checkStalls(TimePoint now, TimePoint resumed, Duration warnAfter, Duration endAfter)
      REQUIRES(driverRole);
  // Ends everything in flight, and every later submission, with that status.
  void failAll(const Status& status) REQUIRES(driverRole);
  // Says to the others that this rank does no more.
  void leave() REQUIRES(driverRole);

  struct Counters {
    std::uint64_t planHits = 0;
    std::uint64_t planMisses = 0;
    std::uint64_t zeroCopyBytes = 0;
  };
  Counters counters() const;

 private:
  Status check(std::span<const EntryPtr> entries) const REQUIRES(mutex_);
  bool isDuplicate(std::span<const EntryPtr> before, const Request& request) const REQUIRES(mutex_);
  // How it goes without agreement, if it may.
  std::optional<collective::Exchange> exchangeOf(const Request& request) const;
  bool inSharedMemory(const Request& request) const;
  // To where it goes; only what goes by its name is left over, with a name.
  void publish(const EntryPtr& entry) REQUIRES(mutex_);
  // Atomic, so that a driver that finds nothing to do takes no lock to find out.
  bool anythingToFlush() const NO_THREAD_SAFETY_ANALYSIS { return outbox_.waits(); }
  bool anythingDeferred() const NO_THREAD_SAFETY_ANALYSIS { return names_.anyDeferred(); }

  bool sequence(TimePoint now) REQUIRES(driverRole);  // on member 0
  bool readLog(TimePoint now) REQUIRES(driverRole);
  bool advanceBatch(TimePoint now) REQUIRES(driverRole);
  bool advancePointToPoint(TimePoint now) REQUIRES(driverRole);
  bool advanceOrdered() REQUIRES(driverRole);
  void completeOrdered() REQUIRES(driverRole);
  // From the sequencer, because other members have sent another operation in its place.
  void retract(const EntryPtr& entry) REQUIRES(driverRole);
  bool checkLeavers() REQUIRES(driverRole);
  // Ends everything in flight because that member has left; false: the true cause is not known yet.
  bool endBecauseOf(int member) REQUIRES(driverRole);
  void handle(control::Define& entry, TimePoint now) REQUIRES(driverRole);
  void handle(control::Batch& entry, TimePoint now) REQUIRES(driverRole);
  void handle(control::Refuse& entry, TimePoint now) REQUIRES(driverRole);
  void handle(control::Joined& entry, TimePoint now) REQUIRES(driverRole);
  void handle(control::Resend& entry, TimePoint now) REQUIRES(driverRole);
  void handle(control::Withdrawn& entry, TimePoint now) REQUIRES(driverRole);
  void handle(control::Abort& entry, TimePoint now) REQUIRES(driverRole);
  void complete(const EntryPtr& entry, Status status) REQUIRES(driverRole);
  void corrupt(const std::string& what) REQUIRES(driverRole);
  // A debug line about this set: for what is rare, or happens for the first time.
  void debug(const std::string& what) const;

  // Constant, and what lives in it.
  const std::shared_ptr<void> memory_;
  const std::int32_t id_;
  const Members members_;
  const bool betweenMachines_;
  const std::function<bool(const void*, std::size_t)> isShared_;
  const std::function<void(const Status&)> endTraffic_;
  SetObserver& observer_;
  const std::unique_ptr<control::ControlChannel> control_;
  const std::unique_ptr<collective::Communicator> communicator_;
  const std::unique_ptr<OrderedOperations> ordered_;  // synchronises itself

  std::atomic<std::size_t> inFlight_{0};
  std::atomic<std::size_t> orderedInFlight_{0};  // of these
  mutable Mutex mutex_;
  SubmissionOutbox outbox_ GUARDED_BY(mutex_);
  NameTable names_ GUARDED_BY(mutex_);
  EntryPtr join_ GUARDED_BY(mutex_);
  // Not ok: nothing can run in this set any more, and why.
  Status over_ GUARDED_BY(mutex_);
  std::uint64_t zeroCopyBytes_ GUARDED_BY(mutex_) = 0;

  Culprits culprits_ GUARDED_BY(driverRole);
  Leavers leavers_ GUARDED_BY(driverRole);
  Stalls stalls_ GUARDED_BY(driverRole);
  std::optional<Sequencing> sequencing_ GUARDED_BY(driverRole);  // on member 0
  BatchRunner runner_ GUARDED_BY(driverRole);
  PointToPoint pointToPoint_;  // synchronises itself
  // Memory that is used again: the last entry of the log, as bytes and decoded; what has ended.
  std::vector<std::byte> bytes_ GUARDED_BY(driverRole);
  control::LogEntry entry_ GUARDED_BY(driverRole);
  std::vector<OrderedOperations::Finished> finished_ GUARDED_BY(driverRole);
  std::vector<PointToPoint::Finished> transferred_ GUARDED_BY(driverRole);
};

}  // namespace farandole::conductor
