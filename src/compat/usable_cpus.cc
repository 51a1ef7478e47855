#include "compat/usable_cpus.h"

#include <algorithm>
#include <set>

#include "process/cpu_topology.h"
#include "process/cpus.h"

namespace farandole::compat {
namespace {

// A core whose highest frequency is this much below the machine's is an E-core.
constexpr double kEfficientBelow = 0.85;

}  // namespace

UsableCpus UsableCpus::uniform(int nodes, int coresPerNode, int threadsPerCore) {
  UsableCpus usable;
  for (int thread = 0; thread < threadsPerCore; ++thread) {
    for (int core = 0; core < nodes * coresPerNode; ++core) {
      usable.cpus.push_back(
          {static_cast<int>(usable.cpus.size()), core, core / coresPerNode, thread == 0, false});
    }
  }
  return usable;
}

std::vector<int> UsableCpus::nodes() const {
  std::set<int> all;
  for (const UsableCpu& cpu : cpus) all.insert(cpu.node);
  return {all.begin(), all.end()};
}

int UsableCpus::cores() const {
  return static_cast<int>(
      std::count_if(cpus.begin(), cpus.end(), [](const UsableCpu& cpu) { return cpu.physical; }));
}

UsableCpus readUsableCpus(const std::string& root) {
  UsableCpus usable;
  const process::CpuTopology topology = process::readCpuTopology(root);
  process::CpuSet allowed = process::affinityCpuSet();
  if (allowed.empty()) allowed.push_back(0);
  int fastest = 0;
  for (const int cpu : allowed) fastest = std::max(fastest, topology.at(cpu).kilohertz);
  std::set<int> cores;
  for (const int cpu : allowed) {
    const process::CpuPlace place = topology.at(cpu);
    const bool slow = place.kilohertz > 0 && place.kilohertz <= kEfficientBelow * fastest;
    usable.cpus.push_back({cpu, place.core, place.node, cores.insert(place.core).second, slow});
  }
  if (const int granted = process::allowedCpus(); granted < static_cast<int>(usable.cpus.size())) {
    usable.quota = granted;
  }
  return usable;
}

}  // namespace farandole::compat
