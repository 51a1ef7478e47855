// ProcessSet, the part that notices what goes wrong: who has left, who is late, who is to blame.
#include <algorithm>

#include "base/log.h"
#include "conductor/process_set.h"

namespace farandole {
namespace {

// The watch hears of an end, and judges it, within this time.
constexpr Duration kCulpritKnown = std::chrono::milliseconds(800);
// The sequencer ends stalled jobs; the others wait so much longer.
constexpr Duration kSequencerFirst = std::chrono::seconds(2);

}  // namespace

bool ProcessSet::findCulprit(Status& status, TimePoint& failedAt, TimePoint now) {
  const bool byConnection = status.code() == Code::kPeerLost || status.code() == Code::kShutdown;
  if (!byConnection || status.rank() < 0) return true;
  if (failedAt == TimePoint{}) failedAt = now;
  if (now - failedAt < kCulpritKnown) return false;
  const SetObserver::Blame blame = observer_.blameFor(status.rank());
  if (blame.rank != status.rank()) {
    status =
        Status(Code::kPeerLost, "rank " + std::to_string(status.rank()) +
                                    " has given up because of rank " + std::to_string(blame.rank))
            .withRank(blame.rank);
  } else if (status.code() == Code::kShutdown) {
    status = Status(Code::kPeerLost, status.message()).withRank(status.rank(), status.host());
  }
  return true;
}

bool ProcessSet::checkLeavers() {
  if (parts_.ordered) {
    // In the channel a member says itself that it leaves, behind all that it has sent there.
    if (const int member = parts_.ordered->channel().lostTo(); member >= 0 && endBecauseOf(member))
      return true;
    const std::lock_guard lock(mutex_);
    if (inFlight_ == orderedInFlight_) return false;
  }
  if (!anythingInFlight()) return false;
  for (int member = 0; member < size(); ++member) {
    if (member != parts_.me && isOutOfReach(member) && endBecauseOf(member)) return true;
  }
  // Between machines the last words may still be on their way, and connections tell the end.
  if (!parts_.betweenMachines && observer_.ends() != endsSeen_) lookForEnds();
  return false;
}

void ProcessSet::lookForEnds() {
  endsSeen_ = observer_.ends();
  for (std::size_t i = 0; i < seenGone_.size(); ++i) {
    seenGone_[i] = observer_.gone(parts_.ranks[i]) ? 1 : 0;
  }
}

bool ProcessSet::endBecauseOf(int member) {
  const std::int32_t leaver = parts_.ranks[static_cast<std::size_t>(member)];
  const SetObserver::Blame blame = observer_.blameFor(leaver);
  if (!blame.certain) return false;
  Status status = fault(Code::kPeerLost,
                        rankName(member) + " has left the job while it was needed here", member);
  if (blame.rank != leaver) {
    status = Status(Code::kPeerLost, rankName(member) + " has given up because of rank " +
                                         std::to_string(blame.rank))
                 .withRank(blame.rank);
  }
  observer_.lostTo(blame.rank);
  failAll(status);
  return true;
}

// A batch that everyone has started ends unless a process is stopped in the middle of it.
bool ProcessSet::checkStuck(TimePoint now, Duration endAfter) {
  if (endAfter <= Duration::zero() || !running_ || now - runningSince_ < endAfter) return false;
  for (int member = 0; member < size(); ++member) {
    if (member == parts_.me || !observer_.stopped(parts_.ranks[static_cast<std::size_t>(member)]))
      continue;
    observer_.broken(fault(Code::kPeerLost,
                           rankName(member) +
                               " was stopped in the middle of an operation and has not gone on"
                               " within the stall limit (FARANDOLE_STALL_SHUTDOWN_SECONDS)",
                           member));
    return true;
  }
  return false;
}

std::string ProcessSet::listRanks(const std::vector<int>& members) const {
  std::string text;
  for (std::size_t i = 0; i < members.size() && i < 16; ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(parts_.ranks[static_cast<std::size_t>(members[i])]);
  }
  return members.size() > 16 ? text + ", …" : text;
}

bool ProcessSet::checkOrderedStall(TimePoint now, Duration warnAfter, Duration endAfter) {
  if (endAfter > Duration::zero()) {
    if (const auto stall = parts_.ordered->stall(now, endAfter); stall && !stall->missing.empty()) {
      observer_.broken(fault(Code::kPeerLost,
                             "'" + stall->name + "' was submitted here but not by rank(s) " +
                                 listRanks(stall->missing) +
                                 " within the stall limit (FARANDOLE_STALL_SHUTDOWN_SECONDS)",
                             stall->missing.front()));
      return true;
    }
  }
  if (warnAfter <= Duration::zero() || now - orderedWarning_ < warnAfter) return false;
  if (const auto stall = parts_.ordered->stall(now, warnAfter); stall && !stall->missing.empty()) {
    orderedWarning_ = now;
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(stall->age).count();
    logWarning("'" + stall->name + "' has been ready on this rank for " + std::to_string(seconds) +
               " s and is still missing from rank(s) " + listRanks(stall->missing));
  }
  return false;
}

void ProcessSet::checkStalls(TimePoint now, TimePoint resumed, Duration warnAfter,
                             Duration endAfter) {
  if (now - lastStallCheck_ < std::chrono::milliseconds(200)) return;
  lastStallCheck_ = now;
  if (resumed != TimePoint{}) {
    if (now - resumed < warnAfter) warnAfter = Duration::zero();
    if (now - resumed < endAfter + kSequencerFirst) endAfter = Duration::zero();
  }
  if (checkStuck(now, endAfter)) return;
  if (parts_.ordered && checkOrderedStall(now, warnAfter, endAfter)) return;
  if (!parts_.sequencer) {
    if (endAfter <= Duration::zero() || running_) return;
    // The sequencer ends stalled jobs; if it is itself what hangs, nobody else will.
    const auto limit = endAfter + kSequencerFirst;
    std::string stuck;
    {
      const std::lock_guard lock(mutex_);
      for (const auto& [name, known] : names_) {
        if (known.inFlight && now - known.inFlight->submitted > limit) stuck = name;
      }
    }
    if (!stuck.empty()) {
      observer_.broken(fault(Code::kPeerLost,
                             "'" + stuck +
                                 "' has been waiting for longer than the stall limit and " +
                                 rankName(0) + ", which orders the operations, does not answer",
                             0));
    }
    return;
  }
  if (endAfter > Duration::zero()) {
    for (const auto& stall : parts_.sequencer->stalls(now, endAfter)) {
      if (stall.missing.empty()) continue;
      return append(Abort{"'" + stall.name + "' was submitted by rank(s) " +
                              listRanks(stall.present) + " but not by rank(s) " +
                              listRanks(stall.missing) +
                              " within the stall limit (FARANDOLE_STALL_SHUTDOWN_SECONDS)",
                          stall.missing.front()});
    }
  }
  if (warnAfter <= Duration::zero()) return;
  for (const auto& stall : parts_.sequencer->stalls(now, warnAfter)) {
    auto& last = stallWarnings_[stall.name];
    if (last != TimePoint() && now - last < warnAfter) continue;
    last = now;
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(stall.age).count();
    logWarning("'" + stall.name + "' has been ready on rank(s) " + listRanks(stall.present) +
               " for " + std::to_string(seconds) + " s and is still missing from rank(s) " +
               listRanks(stall.missing));
  }
  if (stallWarnings_.size() > 10'000) stallWarnings_.clear();
}

}  // namespace farandole
