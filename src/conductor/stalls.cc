#include "conductor/stalls.h"

#include "base/log.h"

namespace farandole::conductor {
namespace {

// The sequencer ends stalled jobs. The other members wait so much longer.
constexpr Duration kSequencerFirst = std::chrono::seconds(2);
constexpr Duration kEvery = std::chrono::milliseconds(200);
constexpr std::size_t kMostWarnings = 10'000;

constexpr char kWithinTheLimit[] = " within the stall limit (FARANDOLE_STALL_SHUTDOWN_SECONDS)";

std::string inSeconds(Duration age) {
  return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(age).count()) + " s";
}

}  // namespace

Stalls::Verdict Stalls::check(const Situation& situation, Limits limits) {
  const TimePoint now = situation.now;
  if (now - lastCheck_ < kEvery) return {};
  lastCheck_ = now;
  if (situation.resumed != TimePoint{}) {
    const Duration runs = now - situation.resumed;
    if (runs < limits.warnAfter) limits.warnAfter = Duration::zero();
    if (runs < limits.endAfter + kSequencerFirst) limits.endAfter = Duration::zero();
  }
  if (limits.endAfter > Duration::zero()) {
    if (Status status = stuck(situation, limits.endAfter); !status.ok()) return {status, {}};
  }
  if (situation.ordered != nullptr) {
    if (Status status = orderedStall(situation, limits); !status.ok()) return {status, {}};
  }
  if (situation.sequencer == nullptr) {
    if (limits.endAfter <= Duration::zero() || situation.runsSince) return {};
    return {silentSequencer(situation, limits.endAfter), {}};
  }
  if (limits.endAfter > Duration::zero()) {
    if (auto abort = overdue(situation, limits.endAfter)) return {{}, std::move(abort)};
  }
  if (limits.warnAfter > Duration::zero()) warn(situation, limits.warnAfter);
  return {};
}

// A batch that all members have started ends, unless a process is stopped in the middle of it.
Status Stalls::stuck(const Situation& situation, Duration endAfter) {
  if (!situation.runsSince || situation.now - *situation.runsSince < endAfter) return {};
  for (int member = 0; member < members_.size(); ++member) {
    if (member == members_.me() || !observer_.stopped(members_.rank(member))) continue;
    return members_.fault(Code::kPeerLost,
                          members_.name(member) +
                              " was stopped in the middle of an operation and has not gone on" +
                              kWithinTheLimit,
                          member);
  }
  return {};
}

Status Stalls::orderedStall(const Situation& situation, Limits limits) {
  const OrderedOperations& ordered = *situation.ordered;
  if (limits.endAfter > Duration::zero()) {
    const auto stall = ordered.stall(situation.now, limits.endAfter);
    if (stall && !stall->missing.empty()) {
      return members_.fault(Code::kPeerLost,
                            "'" + stall->name + "' was submitted here but not by rank(s) " +
                                members_.list(stall->missing) + kWithinTheLimit,
                            stall->missing.front());
    }
  }
  if (limits.warnAfter <= Duration::zero()) return {};
  if (situation.now - orderedWarning_ < limits.warnAfter) return {};
  const auto stall = ordered.stall(situation.now, limits.warnAfter);
  if (stall && !stall->missing.empty()) {
    orderedWarning_ = situation.now;
    logWarning("'" + stall->name + "' has been ready on this rank for " + inSeconds(stall->age) +
               " and is still missing from rank(s) " + members_.list(stall->missing));
  }
  return {};
}

// The sequencer ends stalled jobs. If the sequencer itself hangs, no other rank does.
Status Stalls::silentSequencer(const Situation& situation, Duration endAfter) const {
  const auto name = situation.submittedBefore(situation.now - endAfter - kSequencerFirst);
  if (!name) return {};
  return members_.fault(Code::kPeerLost,
                        "'" + *name + "' has been waiting for longer than the stall limit and " +
                            members_.name(0) + ", which orders the operations, does not answer",
                        0);
}

std::optional<control::Abort> Stalls::overdue(const Situation& situation, Duration endAfter) const {
  for (const auto& stall : situation.sequencer->stalls(situation.now, endAfter)) {
    if (stall.missing.empty()) continue;
    return control::Abort{"'" + stall.name + "' was submitted by rank(s) " +
                              members_.list(stall.present) + " but not by rank(s) " +
                              members_.list(stall.missing) + kWithinTheLimit,
                          stall.missing.front()};
  }
  return std::nullopt;
}

void Stalls::warn(const Situation& situation, Duration warnAfter) {
  for (const auto& stall : situation.sequencer->stalls(situation.now, warnAfter)) {
    auto& last = warnings_[stall.name];
    if (last != TimePoint() && situation.now - last < warnAfter) continue;
    last = situation.now;
    logWarning("'" + stall.name + "' has been ready on rank(s) " + members_.list(stall.present) +
               " for " + inSeconds(stall.age) + " and is still missing from rank(s) " +
               members_.list(stall.missing));
  }
  if (warnings_.size() > kMostWarnings) warnings_.clear();
}

}  // namespace farandole::conductor
