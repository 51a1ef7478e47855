// What the machine and its control groups let a job use.
#include <sys/resource.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/files.h"
#include "launch/facts/fact_items.h"
#include "process/cpu_list.h"
#include "process/cpu_topology.h"
#include "process/cpus.h"

namespace farandole::launch::facts::fact_items {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

json limitOf(int resource) {
  rlimit limit{};
  if (::getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0) return nullptr;
  const auto value = [](rlim_t bytes) {
    return bytes == RLIM_INFINITY ? json("unlimited") : json(bytes);
  };
  return {{"soft", value(limit.rlim_cur)}, {"hard", value(limit.rlim_max)}};
}

// Our folder below /sys/fs/cgroup (version 2) and all above it, innermost first: limits of all
// apply. In a container the file system often begins at our own group.
std::vector<fs::path> controlGroups() {
  std::vector<fs::path> result;
  std::istringstream lines(readSmall("/proc/self/cgroup"));
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("0::/")) continue;
    fs::path inner = fs::path(line.substr(4)).lexically_normal();
    for (; !inner.empty() && inner != "." && inner != "/"; inner = inner.parent_path()) {
      if (*inner.begin() == "..") break;
      result.push_back(fs::path("/sys/fs/cgroup") / inner);
    }
  }
  result.emplace_back("/sys/fs/cgroup");
  return result;
}

// 0 if there is none.
std::uint64_t memoryLimit() {
  std::uint64_t least = 0;
  const auto consider = [&least](const std::string& text) {
    const std::uint64_t value = std::strtoull(text.c_str(), nullptr, 10);
    constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 60;  // version 1 writes a huge number
    if (value > 0 && value < kNoLimit && (least == 0 || value < least)) least = value;
  };
  for (const fs::path& group : controlGroups()) consider(readSmall(group / "memory.max"));
  consider(readSmall("/sys/fs/cgroup/memory/memory.limit_in_bytes"));
  return least;
}

std::uint64_t memoryInfo(const std::string& text, const std::string& key) {
  const auto at = text.find(key + ":");
  if (at == std::string::npos) return 0;
  return std::strtoull(text.c_str() + at + key.size() + 1, nullptr, 10) * 1024;
}

}  // namespace

json limits() {
  struct statvfs shm {};
  json shared = nullptr;
  if (::statvfs("/dev/shm", &shm) == 0) {
    shared = {{"bytes", shm.f_blocks * shm.f_frsize}, {"free", shm.f_bavail * shm.f_frsize}};
  }
  const std::string status = readSmall("/proc/self/status");
  const auto at = status.find("Seccomp:");
  const int seccomp =
      at == std::string::npos ? 0 : static_cast<int>(std::strtol(&status[at + 8], nullptr, 10));
  return {{"memlock", limitOf(RLIMIT_MEMLOCK)},
          {"nofile", limitOf(RLIMIT_NOFILE)},
          {"nproc", limitOf(RLIMIT_NPROC)},
          {"dev_shm", shared},
          {"seccomp", seccomp}};
}

json memory() {
  const std::string info = readSmall("/proc/meminfo");
  return {{"total", memoryInfo(info, "MemTotal")},
          {"available", memoryInfo(info, "MemAvailable")},
          {"cgroup_limit", memoryLimit()}};
}

json cpus() {
  const process::CpuSet allowed = process::affinityCpuSet();
  const process::CpuTopology topology = process::readCpuTopology();
  return {{"allowed", allowed.size()},
          {"cpuset", process::formatCpuList(allowed)},
          {"cores", process::coresOf(topology, allowed).size()},
          {"numa_nodes", std::max<std::size_t>(1, process::nodesOf(topology, allowed).size())},
          {"quota", process::cpuQuota()}};
}

}  // namespace farandole::launch::facts::fact_items
