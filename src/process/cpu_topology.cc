#include "process/cpu_topology.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "base/text.h"

namespace farandole::process {
namespace {

std::optional<std::string> firstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  return line;
}

std::optional<CpuSet> readList(const std::string& path) {
  const auto line = firstLine(path);
  if (!line || trimmed(*line).empty()) return std::nullopt;
  auto cpus = parseCpuList(*line);
  if (!cpus.ok()) return std::nullopt;
  return std::move(*cpus);
}

// Numbers below zero, which the kernel writes for "unknown", count as missing.
std::optional<int> readNumber(const std::string& path) {
  const auto line = firstLine(path);
  const auto number = line ? parseDigits(trimmed(*line)) : std::nullopt;
  if (!number || *number > 1 << 30) return std::nullopt;
  return static_cast<int>(*number);
}

// The numbers N of the folders called prefixN.
std::vector<int> numbersIn(const std::string& folder, std::string_view prefix) {
  std::vector<int> numbers;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(prefix)) continue;
    const auto number = parseDigits(std::string_view(name).substr(prefix.size()));
    if (number && *number < kMostCpus) numbers.push_back(static_cast<int>(*number));
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

std::map<int, int> readNodes(const std::string& folder) {
  std::map<int, int> nodeOfCpu;
  for (int node : numbersIn(folder, "node")) {
    const auto cpus = readList(folder + "/node" + std::to_string(node) + "/cpulist");
    if (!cpus) continue;
    for (int cpu : *cpus) nodeOfCpu[cpu] = node;
  }
  return nodeOfCpu;
}

template <typename Key, typename KeyOf>
std::vector<CpuSet> groupBy(const CpuTopology& topology, const CpuSet& allowed, KeyOf keyOf) {
  std::map<Key, CpuSet> groups;
  for (int cpu : allowed) groups[keyOf(topology.at(cpu))].push_back(cpu);
  std::vector<CpuSet> result;
  for (auto& [key, cpus] : groups) result.push_back(std::move(cpus));
  return result;
}

}  // namespace

CpuPlace CpuTopology::at(int cpu) const {
  const auto found =
      std::lower_bound(cpus.begin(), cpus.end(), cpu,
                       [](const CpuPlace& place, int number) { return place.cpu < number; });
  if (found != cpus.end() && found->cpu == cpu) return *found;
  return {.cpu = cpu, .core = cpu};
}

CpuTopology readCpuTopology(const std::string& root) {
  const std::map<int, int> nodeOfCpu = readNodes(root + "/node");
  // Where the siblings are not listed, package and core number tell them.
  std::map<std::pair<int, int>, int> firstOfCore;
  CpuTopology topology;
  for (int cpu : numbersIn(root + "/cpu", "cpu")) {
    const std::string own = root + "/cpu/cpu" + std::to_string(cpu);
    const std::string folder = own + "/topology/";
    CpuPlace place{.cpu = cpu, .core = cpu};
    place.package = readNumber(folder + "physical_package_id").value_or(0);
    if (const auto siblings = readList(folder + "thread_siblings_list")) {
      place.core = siblings->front();
    } else if (const auto core = readNumber(folder + "core_id")) {
      place.core = firstOfCore.emplace(std::pair(place.package, *core), cpu).first->second;
    }
    place.kilohertz = readNumber(own + "/cpufreq/cpuinfo_max_freq").value_or(0);
    if (const auto node = nodeOfCpu.find(cpu); node != nodeOfCpu.end()) place.node = node->second;
    topology.cpus.push_back(place);
  }
  return topology;
}

std::vector<CpuSet> coresOf(const CpuTopology& topology, const CpuSet& allowed) {
  return groupBy<std::tuple<int, int, int>>(topology, allowed, [](const CpuPlace& place) {
    return std::tuple(place.node, place.package, place.core);
  });
}

std::vector<CpuSet> nodesOf(const CpuTopology& topology, const CpuSet& allowed) {
  return groupBy<int>(topology, allowed, [](const CpuPlace& place) { return place.node; });
}

}  // namespace farandole::process
