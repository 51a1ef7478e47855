// Sequencer: decides, for one process set, what runs next. Pure logic: submissions go in, log
// entries come out; it knows no clocks, channels or buffers, so that every rule can be tested by
// itself.
//
// Readiness is published, not voted: when the last member's submission of a name arrives, the metas
// are compared (only if somebody announced one; repeats agree by construction), a plan is defined
// if it is new, and the plan is ready. Ready plans leave in batches: at once when the engine is
// idle and somebody waits or enough bytes are there, after a short delay otherwise, and early when
// a whole fusion threshold has gathered behind a busy engine.
//
// Plans. A plan is a slot (index) with a generation; a slot is reused when there are more names
// than capacity, least recently used first. A Repeat with an old generation is answered by Resend:
// a plan can be forgotten at any time.
//
// Not thread-safe: the driver owns it.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "control/messages.h"

namespace farandole::control {

class Sequencer {
 public:
  struct Options {
    std::vector<std::string> memberNames;  // "rank 3"; their number is the set's size
    std::int64_t fusionBytes = 64 << 20;
    std::int64_t eagerBytes = 256 << 10;
    Duration batchDelay = std::chrono::microseconds(100);
    std::size_t planCapacity = 4096;
  };
  explicit Sequencer(Options options);

  // A submission that breaks the protocol (never a user's mistake), or for which there is no room
  // because too much is in flight, is an error; the set is then unusable. What it holds is taken.
  Status submit(int member, Submission&& submission, TimePoint now);

  struct Situation {
    bool idle = true;  // the engine has nothing to do
    bool someoneWaits = false;
    TimePoint now;
  };
  // False: decide() would do nothing.
  bool undecided() const { return !out_.empty() || !ready_.empty(); }
  // Appends what belongs into the log now.
  void decide(const Situation& situation, std::vector<LogEntry>& entries);
  // When decide() should be asked again although nothing new has come; only if something is ready.
  std::optional<TimePoint> due() const;
  bool anythingReady() const { return !ready_.empty(); }

  struct Stall {
    std::string name;
    std::vector<int> missing;  // member indices
    std::vector<int> present;
    Duration age;
  };
  std::vector<Stall> stalls(TimePoint now, Duration olderThan) const;

 private:
  enum class Arrival : std::uint8_t { kAbsent, kRepeated, kAnnounced, kWithdrawn };
  struct TrackedPlan {
    PlanId id;
    std::string name;
    Meta meta;
    bool defined = false;  // the log has told everyone
    bool ready = false;    // complete, not yet in a batch
    bool whole = false;    // goes in one batch with all of its group
    std::vector<Arrival> arrivals;
    std::map<int, Meta> announced;  // by member; counted in announcedBytes_
    int present = 0;
    int shared = 0;
    TimePoint first;
    std::uint64_t lastUse = 0;
  };
  // A batch to which plans are still added.
  struct Open {
    Batch batch;
    const Meta* meta;
    bool shared;
    std::int64_t bytes;
    bool whole;
  };
  struct FailedGroup {
    int remaining = 0;
    std::string because;
    int culprit = -1;
  };

  int members() const { return static_cast<int>(options_.memberNames.size()); }
  Status arrive(TrackedPlan& plan, int member, Arrival arrival, bool shared, TimePoint now);
  void completeIfAllAreHere(TrackedPlan& plan);
  void complete(TrackedPlan& plan);
  void makeReady(TrackedPlan& plan);
  // The mismatch between members, if any; describes and names the odd one out.
  std::optional<Refuse> disagreement(const TrackedPlan& plan) const;
  std::optional<Refuse> objectionToJoined(const TrackedPlan& plan) const;
  void refuse(TrackedPlan& plan, Refuse refusal);
  void resetArrivals(TrackedPlan& plan);
  void erase(TrackedPlan& plan);
  // Null: as many as there can be are in use.
  TrackedPlan* planFor(const std::string& name);
  // What a member has announced and what waits for other members; an error: it is too much.
  Status keepAnnouncement(TrackedPlan& plan, int member, Meta meta);
  void dropAnnouncement(TrackedPlan& plan, int member);
  TrackedPlan* leastRecentlyUsed();
  std::vector<int> membersWhere(const TrackedPlan& plan, bool present) const;
  // A member that has submitted one of them and has joined without the other, or -1.
  int onlyInOne(const TrackedPlan& a, const TrackedPlan& b) const;
  void batchReadyPlans(std::vector<LogEntry>& entries);

  const Options options_;
  std::deque<TrackedPlan> plans_;  // by index; stable addresses
  std::vector<std::uint32_t> freeIndices_;
  std::unordered_map<std::string, std::uint32_t> byName_;
  std::uint64_t uses_ = 0;
  bool noneIdle_ = false;  // leastRecentlyUsed() found none, and none has become idle since
  std::vector<std::size_t> announcedBytes_;  // by member: names and metas

  std::deque<std::uint32_t> ready_;
  std::int64_t readyBytes_ = 0;
  TimePoint readySince_;
  TimePoint now_;
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>>
      groups_;  // complete members of groups that wait
  std::unordered_map<std::uint64_t, FailedGroup> failedGroups_;

  std::vector<bool> joined_;
  int joinedCount_ = 0;
  int lastJoined_ = -1;

  std::vector<LogEntry> out_;  // decided, not yet taken by decide()
  std::vector<Open> open_;     // batchReadyPlans()'s; its memory is used again
};

}  // namespace farandole::control
