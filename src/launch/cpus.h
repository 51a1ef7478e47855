// How many CPUs this process may really use.
#pragma once

namespace farandole {

// The smaller of the affinity mask and the cgroup's CPU quota (rounded up), at least 1.
int allowedCpus();

}  // namespace farandole
