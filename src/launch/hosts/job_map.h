// The map of a job, for --display-map: which rank runs where, on which CPUs.
#pragma once

#include <string>
#include <vector>

#include "process/cpu_list.h"

namespace farandole::launch::hosts {

struct MappedRank {
  int rank = 0;
  process::CpuSet cpus = {};  // empty: not bound
  int threads = 0;            // 0: not set by us
};

struct MappedHost {
  std::string name;
  int slots = 0;
  std::vector<MappedRank> ranks = {};  // ascending; a host may have none
};

// A table with a line for each group of ranks that have the same CPUs and threads.
std::string describeMap(const std::vector<MappedHost>& hosts);

// As Open MPI prints it (for scripts that look for its words); hosts without ranks are left out, as
// there. `jobFamily` is the first number of [13236,1].
std::string describeMapAsOpenMpi(const std::vector<MappedHost>& hosts, int jobFamily);

}  // namespace farandole::launch::hosts
