// Conductor: who is ready → order → fuse → run → complete, for all process sets of this rank.
//
// Who drives (docs/threads.md). At most one thread is the driver at a time (it holds drive_). The
// driver steps every set in turn, and sleeps on this rank's doorbell when nothing moves. A thread
// that waits for a handle drives if no other thread does. The background thread drives only while
// operations are in flight and no thread waits. So a lone blocking collective involves no other
// thread. A thread that gives up the role then runs the direct callbacks of what it has completed.
// Locks are taken in this order: drive_, those of the sets, mutex_.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "conductor/bell.h"
#include "conductor/completion.h"
#include "conductor/direct_callbacks.h"
#include "conductor/driver_role.h"
#include "conductor/entry.h"
#include "conductor/network.h"
#include "conductor/process_set.h"
#include "conductor/rank_states.h"
#include "conductor/watch.h"
#include "conductor/yield_limit.h"
#include "observe/timeline.h"

namespace farandole::conductor {

class Conductor final : public SetObserver, public WatchListener {
 public:
  struct Options {
    // How long to spin. Zero if there are more ranks than processors: the rank that is waited for
    // then needs this processor.
    Duration spin = std::chrono::microseconds(50);
    // How long to stay awake after that, yielding the processor, if recent waits were that short.
    Duration yield = std::chrono::microseconds(5000);
    // How long to spin while an operation runs between machines: its data arrives in many messages,
    // and being woken for each would take longer than most of them.
    Duration linkSpin = std::chrono::microseconds(1000);
    Duration stallWarning = std::chrono::seconds(60);
    Duration stallShutdown = Duration::zero();
    // Frees what other ranks no longer need. The driver calls it now and then. May be empty.
    std::function<void()> tidy;
  };
  struct Counters {
    std::uint64_t operations = 0;
    std::uint64_t batches = 0;
    std::uint64_t bytes = 0;
    std::uint64_t planHits = 0;
    std::uint64_t planMisses = 0;
    std::uint64_t zeroCopyBytes = 0;
  };

  // All arguments outlive the conductor. network: null in a job on one machine.
  Conductor(Bell& bell, RankStates& rankStates, Network* network, observe::Timeline& timeline,
            Options options);
  // stop() must have been called before.
  ~Conductor() override;
  // Must be called once, before anything is submitted.
  Status start();

  // Any thread may call the functions from here on.
  void addSet(std::unique_ptr<ProcessSet> set);
  // Refused while operations of the set are in flight on this rank.
  Status removeSet(std::int32_t id);
  // The caller has filled in the entries' handle and set. All entries belong to that set.
  Status submit(std::int32_t set, std::span<const EntryPtr> entries);
  // Returns kOk when the entry is done (whatever its outcome), kTimeout or kInterrupted. The
  // deadline was set at `since`; time during which this process was stopped after that does not
  // count.
  Code wait(const EntryPtr& entry, Deadline deadline, TimePoint since = Clock::now());
  // Does one step as the driver, if no other thread drives. True if the entry is done.
  bool test(const EntryPtr& entry);
  // True if the entry ended as cancelled.
  bool cancel(const EntryPtr& entry, Deadline deadline);
  void fail(Status status) override;
  Counters counters() const;
  void runs(TimePoint now, bool wasStopped) override;
  // Used by the watch thread.
  bool anythingInFlight() const { return inFlight_.load(std::memory_order_relaxed) > 0; }

  // Ends what is in flight as kShutdown, tells the other ranks and joins the threads. No callback
  // runs afterwards.
  void stop();
  // Does the same without telling the other ranks; stop() follows. Only in a job on one machine.
  void halt();
  // True if the calling thread runs a callback.
  bool inCallback() const { return DirectCallbacks::isInside() || completionThread_.isCurrent(); }

 private:
  // SetObserver.
  void completed(const EntryPtr& entry) override REQUIRES(driverRole);
  void ran(const Execution& execution) override REQUIRES(driverRole);
  void broken(Status status) override REQUIRES(driverRole);
  void lostTo(std::int32_t rank) override REQUIRES(driverRole);
  Blame blameFor(std::int32_t rank) override REQUIRES(driverRole);
  bool stopped(std::int32_t rank) override { return rankStates_.stopped(rank); }
  bool gone(std::int32_t rank) override { return rankStates_.gone(rank); }
  std::uint32_t ends() override { return rankStates_.ends(); }

  // A sleeping driver wakes up this often to look for failures and stalls, and in case a doorbell
  // was missed.
  static constexpr Duration kLookAround = std::chrono::milliseconds(200);

  // A thread that looks several times a second and has not done so for this long was stopped.
  static constexpr Duration kStoppedFor = std::chrono::milliseconds(1500);

  // Why driveUntil returned. kCallbacks: there are callbacks to run, which must happen without the
  // role.
  enum class Left { kDone, kTimeout, kInterrupted, kCallbacks };
  // looked: when the deadline was looked at last; TimePoint{}: not since something moved.
  Left driveUntil(const EntryPtr& entry, Deadline& deadline, TimePoint& looked)
      REQUIRES(driverRole);
  static bool passed(Deadline& deadline, TimePoint& looked, TimePoint now = Clock::now());
  // How long to spin while nothing moves, and how long to yield after that.
  Duration spinLimit() const REQUIRES(driverRole);
  Duration yieldFor() const REQUIRES(driverRole);
  bool step() REQUIRES(driverRole);
  // Takes in what has arrived from other machines, then calls step().
  bool pollAndStep() REQUIRES(driverRole);
  // Returns when the driver must wake up at the latest.
  Deadline sleepLimit(Deadline deadline) REQUIRES(driverRole);
  void lookAround() REQUIRES(driverRole);
  void failEverything(const Status& status) REQUIRES(driverRole);
  // Gives up the role, then runs the callbacks of what was completed under it.
  void stepDown() RELEASE(driverRole);
  void endThreads();
  void runInBackground();
  // Drives while no thread waits and operations are in flight. The role is given up on return.
  void driveInBackground() RELEASE(driverRole);
  bool backgroundNeeded() const;
  void lookAroundIdle();
  void kickBackground();
  void wakeWaiters();
  static void pause(int round);
  static void yield();
  void record(const Execution& execution) REQUIRES(driverRole);

  Bell& bell_;
  RankStates& rankStates_;
  Network* const network_;
  observe::Timeline& timeline_;
  const Options options_;

  DriveLock drive_;
  YieldLimit yieldLimit_ GUARDED_BY(driverRole);
  // The sets that step() goes through; refreshed when setsVersion_ changes.
  std::vector<std::shared_ptr<ProcessSet>> stepped_ GUARDED_BY(driverRole);
  std::uint64_t steppedVersion_ GUARDED_BY(driverRole) = 0;
  bool failedEverything_ GUARDED_BY(driverRole) = false;
  // Set inside a step and acted upon after it.
  Status brokenBy_ GUARDED_BY(driverRole);
  // The first rank that left when it was needed.
  std::int32_t lostTo_ GUARDED_BY(driverRole) = -1;
  // When a rank was first seen to have given up.
  TimePoint gaveUpSeen_ GUARDED_BY(driverRole){};
  // Tracks of the timeline, by tensor.
  std::unordered_map<std::string, int> tracks_ GUARDED_BY(driverRole);

  mutable Mutex mutex_;
  std::map<std::int32_t, std::shared_ptr<ProcessSet>> sets_ GUARDED_BY(mutex_);
  ProcessSet::Counters removed_ GUARDED_BY(mutex_);  // the sum over sets that were removed

  // When the watch was awake last; TimePoint{} if there is no watch.
  std::atomic<TimePoint> ranAt_{TimePoint{}};
  std::atomic<TimePoint> resumedAt_{TimePoint{}};  // stalls count from this time

  std::atomic<std::uint64_t> setsVersion_{0};
  std::atomic<std::int64_t> inFlight_{0};
  std::atomic<int> waiters_{0};
  std::atomic<bool> stopping_{false};
  // Does not tell the others that it leaves, until stop() is called.
  std::atomic<bool> silent_{false};
  std::atomic<std::uint64_t> operations_{0};
  std::atomic<std::uint64_t> batches_{0};
  std::atomic<std::uint64_t> bytes_{0};
  // Futex words of this process: one for waiters that do not drive, which changes with completions,
  // and one for the background thread.
  std::atomic<std::uint32_t> completionWord_{0};
  std::atomic<std::uint32_t> backgroundWord_{0};
  std::atomic<bool> backgroundParked_{false};

  DirectCallbacks direct_;  // filled and emptied by the driver; empty while there is none
  CompletionThread completionThread_;
  std::thread background_;
};

}  // namespace farandole::conductor
