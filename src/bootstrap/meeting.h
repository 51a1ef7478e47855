// The meeting: ranks of one machine exchange what they need to share memory and to watch each
// other: everyone's arena and a pidfd of everyone, passed as descriptors.
//
// That ranks can meet at all is what makes them local to each other: an abstract unix socket, the
// same user id, the job's secret. Host names are not looked at.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"
#include "bootstrap/bootstrap.h"

namespace farandole::bootstrap {

// Indexed by local rank; own entries included (duplicates of own descriptors).
struct Met {
  std::vector<UniqueFd> arenas;
  std::vector<UniqueFd> pidfds;
  std::vector<pid_t> pids;  // as seen from this process
};

// Collective over the localSize ranks of one machine. keyPrefix is unique to this group and epoch
// ("e1/h0"): values of bootstrap are written once. arenaFd stays the caller's. Ends by the
// deadline with the local ranks that did not come, and earlier if a rank is known to have ended.
Result<Met> meet(Bootstrap& bootstrap, std::string_view job, std::string_view secretHex,
                 std::uint64_t epoch, int localRank, int localSize, std::string_view keyPrefix,
                 int arenaFd, Deadline deadline);

}  // namespace farandole::bootstrap
