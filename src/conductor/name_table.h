// NameTable: the named operations of one member: which are in flight, which wait because their name
// still is, and the plans by which the log calls them.
//
// A name is in flight from its submission until the log or the end of its batch takes it out. A
// plan is the log's number for a name and what it means; a submission of a name that has a fitting
// plan names the plan only. Pure: submissions go into an outbox, and nothing else is known here of
// engines, channels and clocks.
//
// Called under the set's lock, except anyDeferred(), which any thread may ask.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "conductor/entry.h"
#include "conductor/submission_outbox.h"
#include "control/messages.h"

namespace farandole::conductor {

// Whether the order of submissions tells it from others of its name.
inline bool keepsOrder(const Request& request) { return request.ordered && request.group == 0; }

class NameTable {
 public:
  struct Options {
    int me = 0;  // this member
    // Whether that operation's buffers lie in shared memory.
    std::function<bool(const Request&)> isShared;
    // Whether an ordered operation of its name is before it: until members agree about
    // that one, this one must not meet the others' of that name. Asked of those with a place there.
    std::function<bool(const Entry&)> isHeld;
  };
  struct Counters {
    std::uint64_t hits = 0;    // submissions that named a plan
    std::uint64_t misses = 0;  // and those that did not
  };

  // The outbox outlives it.
  NameTable(Options options, SubmissionOutbox& outbox);

  // Whether two requests may be in flight under one name.
  static bool mayShareName(const Request& a, const Request& b) {
    return keepsOrder(a) && keepsOrder(b);
  }
  // Whether that name is in flight, so that this request has to be refused.
  bool isTaken(const Request& request) const;
  // For an operation without a name. Such names are used again and again, so that they have plans.
  std::string nameByCallOrder(control::Kind kind);

  // Tells the sequencer, at once or when the name is free.
  void publish(const EntryPtr& entry);
  // Asks the sequencer to take it out, which fails it everywhere; nothing if it has no place there.
  void withdraw(const EntryPtr& entry);
  // Asks the sequencer to give it back, as if it had never been. True: it had not been told, and is
  // out.
  bool retract(const EntryPtr& entry);
  // Tells the sequencer the next one of that name, if none is in flight: what held it has ended.
  void publishNext(const std::string& name);
  // Whether there may be operations that publishNext() is to be called for.
  bool anyDeferred() const { return anyDeferred_; }

  // What the log says.
  // True: it is the first plan of that name, as far as this member remembers.
  bool define(control::Define& entry);
  // The operation that is refused, or null if it is not this member's.
  EntryPtr refuse(const control::Refuse& entry);
  // This member's submission named a plan that the sequencer has forgotten.
  void resend(const control::PlanId& plan);
  // The parts of a batch, in its order, without entries if this member has joined. False: the batch
  // has something in it that this member has not submitted like this, or that cannot run together.
  bool entriesOf(const control::Batch& batch, bool joinedHere, std::vector<EntryPtr>& entries);

  // Ends the flight of that name, and begins the next one's. Null: there was none.
  EntryPtr take(const std::string& name);
  // Everything in flight and everything that waits.
  std::vector<EntryPtr> takeAll();

  // The name of an operation in flight that was submitted before then.
  std::optional<std::string> submittedBefore(TimePoint then) const;
  const Counters& counters() const { return counters_; }

 private:
  struct Name {
    EntryPtr inFlight;
    std::int64_t plan = -1;  // index, or -1: must be announced
    std::optional<control::PlanId>
        repeated;           // what the submission in flight named, if it was a Repeat
    bool disputed = false;  // the sequencer was asked to give it back
  };
  struct KnownPlan {
    std::uint32_t generation = 0;
    std::string name;
    std::shared_ptr<const control::Meta> meta;  // null: never defined
    std::uint64_t lastBatch = 0;  // the number of the last batch that it was in, from 1
  };

  bool isHeld(const Entry& entry) const { return entry.byName && options_.isHeld(entry); }
  void tellSequencer(const EntryPtr& entry, Name& known);
  void announce(const Entry& entry);
  void sendRetract(const Entry& entry);
  // The next one of that name, unless it is held. False: there is none.
  bool publishDeferred(const std::string& name);

  const Options options_;
  SubmissionOutbox& outbox_;
  std::unordered_map<std::string, Name> names_;
  std::vector<KnownPlan> plans_;
  std::unordered_map<std::string, std::deque<EntryPtr>>
      deferred_;                          // their name still in flight: by call order, or ordered
  std::atomic<bool> anyDeferred_{false};  // deferred_ may not be empty
  std::uint64_t callOrder_[control::kKindCount] = {};
  std::uint64_t batches_ = 0;
  Counters counters_;
};

}  // namespace farandole::conductor
