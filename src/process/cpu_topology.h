// Which CPUs share a core, a package, a NUMA node.
#pragma once

#include <string>
#include <vector>

#include "process/cpu_list.h"

namespace farandole::process {

struct CpuPlace {
  int cpu = 0;
  int core = 0;  // the lowest CPU of the physical core: the same for its hyperthreads only
  int package = 0;
  int node = 0;
  int kilohertz = 0;  // the highest frequency; 0: not known

  bool operator==(const CpuPlace&) const = default;
};

struct CpuTopology {
  std::vector<CpuPlace> cpus;  // ordered by CPU number

  // Where the CPU is; one that is not known is a core of its own, on node 0.
  CpuPlace at(int cpu) const;
};

// Reads `root`/cpu and `root`/node. What is missing there (containers hide much) is assumed to be
// flat: a core for each CPU, one package, one node. Never fails.
CpuTopology readCpuTopology(const std::string& root = "/sys/devices/system");

// The allowed CPUs by physical core, neighbouring cores next to each other: by node, package, core.
std::vector<CpuSet> coresOf(const CpuTopology& topology, const CpuSet& allowed);

// The allowed CPUs by NUMA node; nodes without one are left out.
std::vector<CpuSet> nodesOf(const CpuTopology& topology, const CpuSet& allowed);

}  // namespace farandole::process
