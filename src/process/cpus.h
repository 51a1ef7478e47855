// How many CPUs this process may really use.
#pragma once

#include <vector>

namespace farandole::process {

// The smaller of the affinity mask and the cgroup's CPU quota (rounded up), at least 1.
int allowedCpus();

// So many CPUs' worth of time the control groups grant this process; 0: they set no limit.
double cpuQuota();

// The numbers of the CPUs in the affinity mask, ascending; empty if the kernel does not tell.
std::vector<int> affinityCpuSet();

}  // namespace farandole::process
