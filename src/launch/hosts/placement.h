// Which rank runs on which host.
#pragma once

#include <optional>
#include <vector>

#include "base/status.h"
#include "launch/hosts/host_spec.h"

namespace farandole::launch::hosts {

enum class MapBy {
  kSlot,  // fills host after host
  kNode,  // deals the ranks out, one to each host in turn, and numbers them so
};

struct PlacedRank {
  int host = 0;  // index
  int rank = 0;
  int localRank = 0;
  int localSize = 1;
  // Horovod's: among the hosts that have a rank with this local rank.
  int crossRank = 0;
  int crossSize = 1;

  bool operator==(const PlacedRank&) const = default;
};

// Beyond this a job is a typing error.
inline constexpr int kMostRanks = 1 << 20;

// In the order of the ranks. Without np every slot gets a rank.
Result<std::vector<PlacedRank>> placeRanks(const std::vector<int>& slots, std::optional<int> np,
                                           MapBy mapBy);

// The same for hosts whose slots are all known (not 0): errors name them and say what to type.
Result<std::vector<PlacedRank>> placeRanks(const std::vector<HostSpec>& hosts,
                                           std::optional<int> np, MapBy mapBy);

}  // namespace farandole::launch::hosts
