#include "conductor/culprits.h"

#include <string>

namespace farandole::conductor {
namespace {

// The watch learns of an end and judges it within this time.
constexpr Duration kCulpritKnown = std::chrono::milliseconds(800);

}  // namespace

bool Culprits::find(Status& status, TimePoint& failedAt, TimePoint now) {
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

std::optional<Culprits::Leaving> Culprits::leavingOf(int member) {
  const std::int32_t leaver = members_.rank(member);
  const SetObserver::Blame blame = observer_.blameFor(leaver);
  if (!blame.certain) return std::nullopt;
  if (blame.rank == leaver) {
    return Leaving{
        members_.fault(Code::kPeerLost,
                       members_.name(member) + " has left the job while it was needed here",
                       member),
        leaver};
  }
  return Leaving{Status(Code::kPeerLost, members_.name(member) + " has given up because of rank " +
                                             std::to_string(blame.rank))
                     .withRank(blame.rank),
                 blame.rank};
}

}  // namespace farandole::conductor
