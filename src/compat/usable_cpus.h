// The CPUs of a machine that a job may use: what pinning is computed from.
#pragma once

#include <string>
#include <vector>

namespace farandole::compat {

struct UsableCpu {
  int cpu = 0;             // the kernel's number
  int core = 0;            // unique in the machine; hyperthreads of one core share it
  int node = 0;            // NUMA
  bool physical = true;    // the first hyperthread of its core
  bool efficient = false;  // an E-core of a hybrid processor
};

struct UsableCpus {
  std::vector<UsableCpu> cpus;  // ascending by number
  int quota = 0;                // so many CPUs' worth of time is granted (cgroup); 0: all of them

  // `nodes` NUMA nodes of `coresPerNode` cores, numbered as Linux numbers servers: first all first
  // hyperthreads, then all second ones.
  static UsableCpus uniform(int nodes, int coresPerNode, int threadsPerCore = 1);

  std::vector<int> nodes() const;  // ascending, each once
  int cores() const;
};

// This machine as this process may use it: only CPUs of its affinity mask (and so of its cgroup's
// cpuset). `root` is /sys/devices/system. What cannot be read counts as one node of single cores.
UsableCpus readUsableCpus(const std::string& root);

}  // namespace farandole::compat
