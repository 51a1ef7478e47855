// Conductor: who is ready → order → fuse → run → complete, for all process sets of this rank.
//
// Who drives (docs/threads.md). At any moment at most one thread is the driver (drive_ held): it
// steps every set round robin and sleeps on this rank's doorbell when nothing moves. A thread that
// waits for a handle drives if nobody else does; the background thread drives only while operations
// are in flight and nobody waits. So a lone blocking collective involves no other thread at all.
// Whoever lets go of the role then runs the direct callbacks of what it has completed.
// Locks, in this order: drive_, sets' own, mutex_.
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
    // Zero where ranks outnumber processors: the one waited for needs this very processor.
    Duration spin = std::chrono::microseconds(50);
    // Behind that, if waits have been so short lately: awake, but the processor is anybody's.
    Duration yield = std::chrono::microseconds(5000);
    // While an operation runs between machines: pieces come one after the other, and to be woken
    // for each takes longer than most of them.
    Duration linkSpin = std::chrono::microseconds(1000);
    Duration stallWarning = std::chrono::seconds(60);
    Duration stallShutdown = Duration::zero();
    // Gives back what other ranks no longer need. The driver calls it now and then. May be empty.
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

  // All outlive it. network: null without other machines.
  Conductor(Bell& bell, RankStates& rankStates, Network* network, observe::Timeline& timeline,
            Options options);
  // stop() must have been called.
  ~Conductor() override;
  // Once, before anything is submitted.
  Status start();

  // Any thread.
  void addSet(std::unique_ptr<ProcessSet> set);
  // Refused while operations of it are in flight here.
  Status removeSet(std::int32_t id);
  // The entries' handle and set are filled in by the caller; they all belong to one set.
  Status submit(std::int32_t set, std::span<const EntryPtr> entries);
  // kOk when done (whatever the outcome), kTimeout, kInterrupted. The deadline was set at `since`;
  // time in which this process was stopped after that does not count.
  Code wait(const EntryPtr& entry, Deadline deadline, TimePoint since = Clock::now());
  // Drives a little.
  bool test(const EntryPtr& entry);
  // True if it ended as cancelled.
  bool cancel(const EntryPtr& entry, Deadline deadline);
  void fail(Status status) override;
  Counters counters() const;
  void runs(TimePoint now, bool wasStopped) override;
  // For the watch thread: is anyone waiting for something?
  bool anythingInFlight() const { return inFlight_.load(std::memory_order_relaxed) > 0; }

  // Ends what is in flight as kShutdown, tells the others, joins the threads. No callback runs
  // afterwards.
  void stop();
  // The same without a word to the others; stop() follows. Only without other machines.
  void halt();
  // Whether the calling thread runs a callback.
  bool inCallback() const { return DirectCallbacks::isInside() || completionThread_.isCurrent(); }

 private:
  // SetObserver; called by the driver.
  void completed(const EntryPtr& entry) override REQUIRES(driverRole);
  void ran(const Execution& execution) override REQUIRES(driverRole);
  void broken(Status status) override REQUIRES(driverRole);
  void lostTo(std::int32_t rank) override REQUIRES(driverRole);
  Blame blameFor(std::int32_t rank) override REQUIRES(driverRole);
  bool stopped(std::int32_t rank) override { return rankStates_.stopped(rank); }
  bool gone(std::int32_t rank) override { return rankStates_.gone(rank); }
  std::uint32_t ends() override { return rankStates_.ends(); }

  // A sleeping driver looks around this often: for failures, stalls, and as a belt to the
  // doorbell's braces.
  static constexpr Duration kLookAround = std::chrono::milliseconds(200);

  // Who looks several times a second and has not for so long did not run.
  static constexpr Duration kStoppedFor = std::chrono::milliseconds(1500);

  // kCallbacks: there are callbacks to run, without the role.
  enum class Left { kDone, kTimeout, kInterrupted, kCallbacks };
  // looked: when the deadline was looked at last; TimePoint{}: not since something moved.
  Left driveUntil(const EntryPtr& entry, Deadline& deadline, TimePoint& looked)
      REQUIRES(driverRole);
  static bool passed(Deadline& deadline, TimePoint& looked, TimePoint now = Clock::now());
  // How long to spin although nothing moves; and behind that, to yield.
  Duration spinLimit() const REQUIRES(driverRole);
  Duration yieldFor() const REQUIRES(driverRole);
  bool step() REQUIRES(driverRole);
  // step, after a look at what has come from other machines.
  bool pollAndStep() REQUIRES(driverRole);
  // How long the driver may sleep.
  Deadline sleepLimit(Deadline deadline) REQUIRES(driverRole);
  void lookAround() REQUIRES(driverRole);
  void failEverything(const Status& status) REQUIRES(driverRole);
  // Unlocks drive_, then runs the callbacks of what was completed under it.
  void stepDown() RELEASE(driverRole);
  void endThreads();
  void runInBackground();
  // While nobody waits and something is in flight. Called with drive_ held, returns without it.
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
  // What step() goes through; refreshed when setsVersion_ changes.
  std::vector<std::shared_ptr<ProcessSet>> stepped_ GUARDED_BY(driverRole);
  std::uint64_t steppedVersion_ GUARDED_BY(driverRole) = 0;
  bool failedEverything_ GUARDED_BY(driverRole) = false;
  // Noted inside a step, acted upon after it.
  Status brokenBy_ GUARDED_BY(driverRole);
  // The first rank that left when it was needed.
  std::int32_t lostTo_ GUARDED_BY(driverRole) = -1;
  // When a rank was first seen to have given up.
  TimePoint gaveUpSeen_ GUARDED_BY(driverRole){};
  // Tracks of the timeline, by tensor.
  std::unordered_map<std::string, int> tracks_ GUARDED_BY(driverRole);

  mutable Mutex mutex_;
  std::map<std::int32_t, std::shared_ptr<ProcessSet>> sets_ GUARDED_BY(mutex_);
  ProcessSet::Counters removed_ GUARDED_BY(mutex_);  // of sets that are no more

  std::atomic<TimePoint> ranAt_{TimePoint{}};  // when the watch was awake last; never without one
  std::atomic<TimePoint> resumedAt_{TimePoint{}};  // stalls count from here

  std::atomic<std::uint64_t> setsVersion_{0};
  std::atomic<std::int64_t> inFlight_{0};
  std::atomic<int> waiters_{0};
  std::atomic<bool> stopping_{false};
  std::atomic<bool> silent_{false};  // leaves without saying so, until stop()
  std::atomic<std::uint64_t> operations_{0};
  std::atomic<std::uint64_t> batches_{0};
  std::atomic<std::uint64_t> bytes_{0};
  // Futex words of this process: completions (for waiters that do not drive) and the background
  // thread's bell.
  std::atomic<std::uint32_t> completionWord_{0};
  std::atomic<std::uint32_t> backgroundWord_{0};
  std::atomic<bool> backgroundParked_{false};

  DirectCallbacks direct_;  // noted and taken under drive_, empty whenever it is free
  CompletionThread completionThread_;
  std::thread background_;
};

}  // namespace farandole::conductor
