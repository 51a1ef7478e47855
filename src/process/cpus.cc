#include "process/cpus.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "process/cpu_list.h"

namespace farandole::process {
namespace {

// "max 100000" or "150000 100000", as in cgroup v2.
std::optional<double> readQuotaV2(const std::string& folder) {
  std::ifstream file(folder + "/cpu.max");
  std::string quota;
  double period = 0;
  if (!(file >> quota >> period) || quota == "max" || period <= 0) return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(quota.c_str(), &end);
  if (*end != '\0' || value <= 0) return std::nullopt;
  return value / period;
}

std::optional<double> readQuotaV1(const std::string& folder) {
  std::ifstream quotaFile(folder + "/cpu.cfs_quota_us");
  std::ifstream periodFile(folder + "/cpu.cfs_period_us");
  double quota = 0;
  double period = 0;
  if (!(quotaFile >> quota) || !(periodFile >> period) || quota <= 0 || period <= 0) {
    return std::nullopt;
  }
  return quota / period;
}

// The tightest quota of the group and its ancestors. In a container the path may not exist under
// the mount; the walk then ends at the mount itself, which is the container's own group.
template <typename Read>
void tightestQuota(const std::string& mount, std::string path, Read read, double& limit) {
  while (true) {
    const auto quota = read(mount + path);
    if (quota && (limit == 0 || *quota < limit)) limit = *quota;
    const auto slash = path.rfind('/');
    if (slash == std::string::npos || path.empty()) return;
    path.resize(slash);
  }
}

bool listsCpuController(const std::string& controllers) {
  return ("," + controllers + ",").find(",cpu,") != std::string::npos;
}

}  // namespace

std::vector<int> affinityCpuSet() {
  std::vector<cpu_set_t> sets(CPU_ALLOC_SIZE(kMostCpus) / sizeof(cpu_set_t));
  const std::size_t bytes = sets.size() * sizeof(cpu_set_t);
  std::vector<int> cpus;
  if (::sched_getaffinity(0, bytes, sets.data()) != 0) return cpus;
  for (int cpu = 0; cpu < kMostCpus; ++cpu) {
    if (CPU_ISSET_S(static_cast<std::size_t>(cpu), bytes, sets.data())) cpus.push_back(cpu);
  }
  return cpus;
}

double cpuQuota() {
  double quota = 0;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const auto first = line.find(':');
    const auto second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (controllers.empty()) {
      for (const char* mount : {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}) {
        tightestQuota(mount, path, readQuotaV2, quota);
      }
    } else if (listsCpuController(controllers)) {
      for (const char* mount : {"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"}) {
        tightestQuota(mount, path, readQuotaV1, quota);
      }
    }
  }
  return quota;
}

int allowedCpus() {
  const int affinity = std::max(1, static_cast<int>(affinityCpuSet().size()));
  const double quota = cpuQuota();
  if (quota == 0 || quota >= affinity) return affinity;
  return std::max(1, static_cast<int>(std::ceil(quota)));
}

}  // namespace farandole::process
