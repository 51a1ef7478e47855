// ProcessSet: one set of ranks: its control channel, its engine, its plans, and what is in flight.
//
// Threads. submit and cancel may be called by any thread (mutex_); step and everything below it by
// the driver only. Several sets never wait for each other: each step does what can be done now and
// returns.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "collective/communicator.h"
#include "conductor/batch_run.h"
#include "conductor/entry.h"
#include "conductor/ordered_operations.h"
#include "control/control_channel.h"
#include "control/sequencer.h"

namespace farandole {

// What a set tells the conductor. Called by the driver, without the set's lock held.
class SetObserver {
 public:
  virtual ~SetObserver() = default;
  // The entry's outcome is final.
  virtual void completed(const EntryPtr& entry) = 0;
  virtual void ran(const Execution& execution, TimePoint started) = 0;
  // The job cannot go on.
  virtual void broken(Status status) = 0;
  // The set has failed because that rank has left.
  virtual void lostTo(std::int32_t) {}
  // Who is to blame for that rank's leaving: itself, or another one because of which it gave up.
  // Not certain while this rank is about to hear of that one itself.
  struct Blame {
    std::int32_t rank = -1;
    bool certain = true;
  };
  // True if that rank's process is known to be stopped.
  virtual bool stopped(std::int32_t) { return false; }
  // True if that rank's process has ended, on this machine: it writes no more into shared memory,
  // whatever it has said before.
  virtual bool gone(std::int32_t) { return false; }
  // Of how many ranks, of this set or not, that is true.
  virtual std::uint32_t ends() { return 0; }
  virtual Blame blameFor(std::int32_t rank) { return {rank, true}; }
};

class ProcessSet {
 public:
  struct Parts {
    // What control and communicator live in; given up after them, and after everything that runs.
    std::shared_ptr<void> memory;
    std::int32_t id = 0;
    std::vector<std::int32_t> ranks;  // global, in the order of the set
    int me = 0;                       // index of this rank
    std::vector<std::string> hosts;   // of the members
    std::unique_ptr<ControlChannel> control;
    std::unique_ptr<Communicator> communicator;
    std::unique_ptr<Sequencer> sequencer;        // on member 0 only
    std::unique_ptr<OrderedOperations> ordered;  // null: ordered operations are like all others
    bool betweenMachines = false;
    // True if that memory lies in this rank's arena; any thread.
    std::function<bool(const void*, std::size_t)> isShared;
    // Makes sure that the engine's operations touch no memory any more, when they are given up. May
    // be empty.
    std::function<void(const Status&)> endTraffic;
  };
  ProcessSet(Parts parts, SetObserver& observer);

  std::int32_t id() const { return parts_.id; }
  const std::vector<std::int32_t>& ranks() const { return parts_.ranks; }
  int me() const { return parts_.me; }
  int size() const { return static_cast<int>(parts_.ranks.size()); }
  ControlChannel& control() { return *parts_.control; }
  Communicator& communicator() { return *parts_.communicator; }

  // All or nothing; kDuplicateName names the first offender.
  Status submit(std::span<const EntryPtr> entries);
  // Asks for the entry to be withdrawn; it ends as kCancelled unless it runs first.
  void cancel(const EntryPtr& entry);
  bool anythingInFlight() const { return inFlight_ > 0; }

  // Does what can be done now. True if something moved.
  bool step(TimePoint now);
  // When step has work again although nothing comes from outside.
  std::optional<TimePoint> due() const;
  // Whether an operation is under way whose next piece comes over the network. The driver's.
  bool awaitsNetwork() const {
    return (running_ && parts_.betweenMachines) ||
           (parts_.ordered && parts_.ordered->channel().busy());
  }
  // Whether all members have submitted something that is not done yet. The driver's.
  bool runs() const { return running_.has_value(); }
  // How long the driver may sleep before the engine must be looked at again.
  Duration nap() const;
  // Warns about, or ends, what some ranks have not submitted. ends = 0: never.
  // resumed: when this process ran again after it had been stopped; what is late counts from there;
  // never: TimePoint{}.
  void checkStalls(TimePoint now, TimePoint resumed, Duration warnAfter, Duration endAfter);
  // Ends everything in flight, and every later submission, with that status.
  void failAll(const Status& status);
  // Says to the others that this rank does no more.
  void leave();

  struct Counters {
    std::uint64_t planHits = 0;
    std::uint64_t planMisses = 0;
    std::uint64_t zeroCopyBytes = 0;
  };
  Counters counters() const;

 private:
  struct Name {
    EntryPtr inFlight;
    std::int64_t plan = -1;          // index, or -1: must be announced
    std::optional<PlanId> repeated;  // what the submission in flight named, if it was a Repeat
    bool disputed = false;           // the sequencer was asked to give it back
  };
  struct Plan {
    std::uint32_t generation = 0;
    std::string name;
    std::shared_ptr<const Meta> meta;  // null: never defined
    std::uint64_t lastBatch = 0;       // the number of the last batch that it was in, from 1
  };
  struct PointToPoint {
    EntryPtr entry;
    OperationPtr operation;
    std::unique_ptr<Received> received;
    TimePoint failedAt{};
  };

  // Under mutex_.
  void publish(const EntryPtr& entry);
  void tellSequencer(const EntryPtr& entry, Name& known);
  // Whether a direct ordered one of its name is before it: until members agree about that
  // one, this one must not meet the others' of that name.
  bool isHeld(const Entry& entry) const;
  void announce(const EntryPtr& entry);
  void send(const Submission& submission);
  void flushOutbox();
  std::string nameByCallOrder(Kind kind);
  bool inSharedMemory(const Request& request) const;
  // How it goes without agreement, if it may.
  std::optional<Exchange> exchangeOf(const Request& request) const;
  EntryPtr takeInFlight(const std::string& name);
  // The next one of that name, unless it is held. False: there is none.
  bool publishDeferred(const std::string& name);
  void retract(const EntryPtr& entry);

  // The driver's.
  bool sequence(TimePoint now);
  void append(const LogEntry& entry);
  bool flushUnappended();
  bool readLog(TimePoint now);
  bool advanceExecution(TimePoint now);
  bool advancePointToPoint(TimePoint now) {
    if (pointToPoint_.empty() && !anyNewPointToPoint_.load(std::memory_order_acquire)) return false;
    return advanceEachPointToPoint(now);
  }
  bool advanceEachPointToPoint(TimePoint now);
  bool advanceOrdered();
  // From the sequencer, because other members have sent another operation in its place.
  void takeBack(const EntryPtr& entry);
  // An engine sees only that a connection ended. Whoever is to blame may be another rank, and is
  // known a moment later: false until then.
  bool findCulprit(Status& status, TimePoint& failedAt, TimePoint now);
  void startPointToPoint(const EntryPtr& entry);
  bool checkLeavers();
  // Whether that member can do nothing more for what is in flight here.
  bool isOutOfReach(int member) const {
    // What it has executed, this rank may still have to; what lies beyond can never run.
    if (const auto left = parts_.control->leftAt(member)) {
      if (running_ ? *left < runningPosition_ : parts_.control->position() >= *left) return true;
    }
    // Whatever it says, or does not say: a process that has ended submits, decides and executes
    // nothing. If that was known before this step, the step has read all of the log that it may
    // have executed, and has found nothing to do. What runs is the engine's to judge: it knows for
    // whom it waits.
    return seenGone_[static_cast<std::size_t>(member)] != 0 && !running_;
  }
  void lookForEnds();
  // Ends everything in flight because that member has left; false: the true cause is not known yet.
  bool endBecauseOf(int member);
  bool checkOrderedStall(TimePoint now, Duration warnAfter, Duration endAfter);
  std::string listRanks(const std::vector<int>& members) const;
  bool checkStuck(TimePoint now, Duration endAfter);
  void handle(Define& entry);
  void handle(Batch& entry, TimePoint now);
  void handle(Refuse& entry);
  void handle(Joined& entry);
  void handle(Resend& entry);
  void handle(Withdrawn& entry);
  void handle(Abort& entry);
  void complete(const EntryPtr& entry, Status status);
  std::string describe(const BatchRun::Refusal& refusal) const;
  void corrupt(std::string what);
  std::string rankName(int member) const;
  Status fault(Code code, std::string text, int member) const;

  Parts parts_;
  SetObserver& observer_;

  // So that a driver that finds nothing to do takes no lock to find out.
  std::atomic<bool> anyNewPointToPoint_{false};
  std::atomic<bool> outboxWaits_{false};
  std::atomic<bool> anyDeferred_{false};  // deferred_ may not be empty
  std::atomic<std::size_t> inFlight_{0};
  std::atomic<std::size_t> orderedInFlight_{0};  // of these

  mutable Mutex mutex_;
  // Guarded by mutex_.
  std::unordered_map<std::string, Name> names_;
  std::vector<Plan> plans_;
  Writer submission_;                          // the memory of the one that is sent
  std::deque<std::vector<std::byte>> outbox_;  // submissions that found the ring full
  std::unordered_map<std::string, std::deque<EntryPtr>>
      deferred_;  // their name still in flight: by call order, or ordered
  std::deque<EntryPtr> newPointToPoint_;
  EntryPtr join_;
  std::uint64_t callOrder_[kKindCount] = {};
  Status over_;  // not ok: nothing can run in this set any more, and why
  Counters counters_;

  // The driver's alone.
  std::optional<BatchRun> running_;
  TimePoint runningSince_;
  TimePoint runningFailedAt_{};
  std::uint64_t runningPosition_ = 0;  // of the log, behind the batch that runs
  std::uint64_t executed_ = 0;         // of the log: everything before it is done
  std::vector<PointToPoint> pointToPoint_;
  std::deque<std::vector<std::byte>> unappended_;  // log entries that found the log full
  std::vector<LogEntry> decided_;
  Writer logEntry_;  // the memory of the one that is appended
  std::vector<OrderedOperations::Finished> ordered_;
  std::vector<std::byte> buffer_;
  Submission received_;  // the last one, and
  LogEntry read_;        // the last entry: their memory is used again
  std::uint64_t batchesRead_ = 0;
  std::uint64_t batchesDecided_ = 0;
  std::uint64_t batchesFinished_ = 0;
  TimePoint lastStallCheck_;
  std::unordered_map<std::string, TimePoint> stallWarnings_;
  TimePoint orderedWarning_{};
  std::uint32_t endsSeen_ = 0;
  std::vector<char> seenGone_;  // by member: its process had ended before this step
};

}  // namespace farandole
