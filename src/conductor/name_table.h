// NameTable: the named operations of one member: which are in flight, which wait because their name
// is still in flight, and the plans by which the log calls them.
//
// A name is in flight from its submission until the log or the end of its batch takes it out. A
// plan is the log's number for a name and its meta; a submission whose name has a plan that fits
// carries only the number of that plan. Pure logic: submissions go into an outbox, and the table
// knows no engines, channels or clocks.
//
// Called under the set's lock, except anyDeferred(), which any thread may call.
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

// True if the order of submissions tells the request from others of its name.
inline bool keepsOrder(const Request& request) { return request.ordered && request.group == 0; }

class NameTable {
 public:
  struct Options {
    int me = 0;  // this member
    // True if that operation's buffers lie in shared memory.
    std::function<bool(const Request&)> isShared;
    // True if an ordered operation of the same name comes before it. Until the members have agreed
    // on that one, this one must not meet the other members' operations of that name. Called only
    // for entries that have a place in the ordered channel.
    std::function<bool(const Entry&)> isHeld;
  };
  struct Counters {
    std::uint64_t hits = 0;    // submissions that carried the number of a plan
    std::uint64_t misses = 0;  // submissions that carried the name and the meta
  };

  // The outbox outlives this object.
  NameTable(Options options, SubmissionOutbox& outbox);

  // True if two requests may be in flight under one name.
  static bool mayShareName(const Request& a, const Request& b) {
    return keepsOrder(a) && keepsOrder(b);
  }
  // True if that name is in flight, so that this request has to be refused.
  bool isTaken(const Request& request) const;
  // Names an operation that has no name. Such names are used again after a while, so that they have
  // plans too.
  std::string nameByCallOrder(control::Kind kind);

  // Submits the entry to the sequencer, at once or when its name is free.
  void publish(const EntryPtr& entry);
  // Asks the sequencer to withdraw the entry, which fails it on all members. Does nothing if the
  // sequencer does not have it.
  void withdraw(const EntryPtr& entry);
  // Asks the sequencer to forget the entry as if it had never been submitted. True if it had not
  // been submitted yet, and is out.
  bool retract(const EntryPtr& entry);
  // Submits the next entry of that name, if none is in flight. Called when what held it has ended.
  void publishNext(const std::string& name);
  // True if there may be entries for which publishNext() has to be called.
  bool anyDeferred() const { return anyDeferred_; }

  // These execute entries of the log. define returns true if it is the first plan of that name, as
  // far as this member remembers.
  bool define(control::Define& entry);
  // Returns the entry that is refused, or null if it is not this member's.
  EntryPtr refuse(const control::Refuse& entry);
  // This member's submission named a plan that the sequencer has forgotten.
  void resend(const control::PlanId& plan);
  // Finds the entries of a batch, in its order; they are neutral if this member has joined. False
  // if the batch contains something that this member has not submitted like this, or that cannot
  // run together.
  bool entriesOf(const control::Batch& batch, bool joinedHere, std::vector<EntryPtr>& entries);

  // Takes the entry of that name out of flight, and submits the next one of that name. Null if
  // there was none.
  EntryPtr take(const std::string& name);
  // Takes out everything that is in flight or deferred.
  std::vector<EntryPtr> takeAll();

  // The name of an operation in flight that was submitted before that time.
  std::optional<std::string> submittedBefore(TimePoint then) const;
  const Counters& counters() const { return counters_; }

 private:
  struct Name {
    EntryPtr inFlight;
    std::int64_t plan = -1;  // index of its plan, or -1: must be announced
    // The plan that the submission in flight named, if it was a Repeat.
    std::optional<control::PlanId> repeated;
    bool disputed = false;  // the sequencer was asked to retract it
  };
  // A plan as the log has defined it.
  struct KnownPlan {
    std::uint32_t generation = 0;
    std::string name;
    std::shared_ptr<const control::Meta> meta;  // null: never defined
    std::uint64_t lastBatch = 0;  // the number of the last batch that contained it, from 1
  };

  bool isHeld(const Entry& entry) const { return entry.byName && options_.isHeld(entry); }
  void tellSequencer(const EntryPtr& entry, Name& known);
  void announce(const Entry& entry);
  void sendRetract(const Entry& entry);
  // Submits the next deferred entry of that name, unless it is held. False if there is none.
  bool publishDeferred(const std::string& name);

  const Options options_;
  SubmissionOutbox& outbox_;
  std::unordered_map<std::string, Name> names_;
  std::vector<KnownPlan> plans_;
  // Entries whose name is still in flight: named by call order, or ordered.
  std::unordered_map<std::string, std::deque<EntryPtr>> deferred_;
  std::atomic<bool> anyDeferred_{false};  // false: deferred_ is empty
  std::uint64_t callOrder_[control::kKindCount] = {};
  std::uint64_t batches_ = 0;
  Counters counters_;
};

}  // namespace farandole::conductor
