#include "launch/plan/cpu_sets.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "base/text.h"

namespace farandole::launch::plan {
namespace {

Binding unbound(int localRanks, std::string note = {}) {
  return {std::vector<process::CpuSet>(static_cast<std::size_t>(localRanks)), std::move(note)};
}

process::CpuSet joined(const std::vector<process::CpuSet>& groups, std::size_t begin,
                       std::size_t end) {
  process::CpuSet cpus;
  for (std::size_t i = begin; i < end; ++i) {
    cpus.insert(cpus.end(), groups[i].begin(), groups[i].end());
  }
  std::sort(cpus.begin(), cpus.end());
  return cpus;
}

Binding bindToCores(int localRanks, const std::vector<process::CpuSet>& cores) {
  const auto ranks = static_cast<std::size_t>(localRanks);
  const std::size_t each = cores.size() / ranks;
  if (each == 0) {
    return unbound(localRanks, "not bound to cores: " + countOf(localRanks, "rank") + " but only " +
                                   countOf(static_cast<int>(cores.size()), "core"));
  }
  Binding binding;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    binding.sets.push_back(joined(cores, rank * each, (rank + 1) * each));
  }
  return binding;
}

Binding bindToNodes(int localRanks, const std::vector<process::CpuSet>& nodes) {
  const auto ranks = static_cast<std::size_t>(localRanks);
  if (nodes.empty()) return unbound(localRanks, "not bound: no CPUs are known");
  Binding binding;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    if (ranks >= nodes.size()) {
      binding.sets.push_back(nodes[rank % nodes.size()]);
    } else {
      binding.sets.push_back(
          joined(nodes, rank * nodes.size() / ranks, (rank + 1) * nodes.size() / ranks));
    }
  }
  return binding;
}

}  // namespace

Binding bindingFor(BindTo bindTo, int localRanks, const process::CpuTopology& topology,
                   const process::CpuSet& allowed) {
  if (localRanks < 1) return {};
  switch (bindTo) {
    case BindTo::kNone: return unbound(localRanks);
    case BindTo::kCore: return bindToCores(localRanks, process::coresOf(topology, allowed));
    case BindTo::kNuma: return bindToNodes(localRanks, process::nodesOf(topology, allowed));
  }
  return unbound(localRanks);
}

Result<Binding> bindingFromSets(const std::vector<process::CpuSet>& sets, int localRanks,
                                const process::CpuSet& allowed) {
  if (sets.size() < static_cast<std::size_t>(localRanks)) {
    return Status::invalid("--cpus has " + countOf(static_cast<int>(sets.size()), "set") +
                           ", but there are " + std::to_string(localRanks) +
                           " ranks on a host; give one set for each, separated by ';'");
  }
  Binding binding;
  for (int rank = 0; rank < localRanks; ++rank) {
    const process::CpuSet& wanted = sets[static_cast<std::size_t>(rank)];
    process::CpuSet usable = process::commonCpus(wanted, allowed);
    if (usable.empty()) {
      return Status::invalid("--cpus: none of the CPUs " + process::formatCpuList(wanted) +
                             " of local rank " + std::to_string(rank) +
                             " may be used here; allowed are " + process::formatCpuList(allowed));
    }
    if (usable.size() < wanted.size() && binding.note.empty()) {
      binding.note = "of the CPUs " + process::formatCpuList(wanted) + " of local rank " +
                     std::to_string(rank) + " only " + process::formatCpuList(usable) +
                     " are allowed";
    }
    binding.sets.push_back(std::move(usable));
  }
  return binding;
}

std::vector<int> threadsPerRank(const Binding& binding, const process::CpuTopology& topology,
                                const process::CpuSet& allowed, int usableCpus) {
  std::map<process::CpuSet, int> sharers;
  for (const process::CpuSet& set : binding.sets) ++sharers[set];
  std::vector<int> threads;
  std::int64_t sum = 0;
  for (const process::CpuSet& set : binding.sets) {
    const auto cores = process::coresOf(topology, set.empty() ? allowed : set).size();
    threads.push_back(std::max(1, static_cast<int>(cores) / sharers[set]));
    sum += threads.back();
  }
  for (int& count : threads) {
    if (sum > usableCpus)
      count = std::max(1, static_cast<int>(count * std::int64_t{usableCpus} / sum));
  }
  return threads;
}

}  // namespace farandole::launch::plan
