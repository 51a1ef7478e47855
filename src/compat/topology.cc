#include "compat/topology.h"

#include <sched.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "process/cpus.h"

namespace farandole {
namespace {

// A core whose highest frequency is this much below the machine's is an E-core.
constexpr double kEfficientBelow = 0.85;

std::optional<long> readNumber(const std::string& path) {
  std::ifstream in(path);
  long value = 0;
  if (!(in >> value)) return std::nullopt;
  return value;
}

// The NUMA node of a CPU is a link called node<N> in its folder.
int nodeOf(const std::string& folder) {
  std::error_code ignored;
  for (std::filesystem::directory_iterator it(folder, ignored), end; it != end;
       it.increment(ignored)) {
    const std::string name = it->path().filename().string();
    if (name.starts_with("node") && name.size() > 4 && name.size() < 9 &&
        name.find_first_not_of("0123456789", 4) == std::string::npos) {
      return std::stoi(name.substr(4));
    }
  }
  return 0;
}

void markPhysical(std::vector<LogicalCpu>& cpus) {
  std::set<int> seen;
  for (LogicalCpu& cpu : cpus) cpu.physical = seen.insert(cpu.core).second;
}

void markEfficient(std::vector<LogicalCpu>& cpus, const std::map<int, long>& highest) {
  long best = 0;
  for (const auto& [cpu, frequency] : highest) best = std::max(best, frequency);
  for (LogicalCpu& cpu : cpus) {
    const auto found = highest.find(cpu.cpu);
    cpu.efficient = found != highest.end() && static_cast<double>(found->second) <=
                                                  kEfficientBelow * static_cast<double>(best);
  }
}

}  // namespace

Topology Topology::uniform(int nodes, int coresPerNode, int threadsPerCore) {
  Topology topology;
  for (int thread = 0; thread < threadsPerCore; ++thread) {
    for (int core = 0; core < nodes * coresPerNode; ++core) {
      topology.cpus.push_back({static_cast<int>(topology.cpus.size()), core, core / coresPerNode,
                               core / coresPerNode, thread == 0, false});
    }
  }
  return topology;
}

std::vector<int> Topology::nodes() const {
  std::set<int> all;
  for (const LogicalCpu& cpu : cpus) all.insert(cpu.node);
  return {all.begin(), all.end()};
}

int Topology::cores() const {
  return static_cast<int>(
      std::count_if(cpus.begin(), cpus.end(), [](const LogicalCpu& cpu) { return cpu.physical; }));
}

Topology readTopology(const std::string& root) {
  Topology topology;
  cpu_set_t mask;
  CPU_ZERO(&mask);
  const bool known = ::sched_getaffinity(0, sizeof(mask), &mask) == 0;
  std::map<std::pair<long, long>, int> cores;  // (socket, core in it) → unique number
  std::map<int, long> highest;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (known ? !CPU_ISSET(cpu, &mask) : cpu != 0) continue;
    const std::string folder = root + "/cpu/cpu" + std::to_string(cpu);
    const long socket = readNumber(folder + "/topology/physical_package_id").value_or(0);
    const long core = readNumber(folder + "/topology/core_id").value_or(100'000 + cpu);
    const int unique =
        cores.emplace(std::pair(socket, core), static_cast<int>(cores.size())).first->second;
    if (const auto frequency = readNumber(folder + "/cpufreq/cpuinfo_max_freq")) {
      highest[cpu] = *frequency;
    }
    topology.cpus.push_back({cpu, unique, static_cast<int>(socket), nodeOf(folder), true, false});
  }
  markPhysical(topology.cpus);
  markEfficient(topology.cpus, highest);
  if (const int allowed = allowedCpus(); allowed < static_cast<int>(topology.cpus.size())) {
    topology.quota = allowed;
  }
  return topology;
}

}  // namespace farandole
