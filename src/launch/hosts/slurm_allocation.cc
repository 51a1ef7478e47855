// Slurm: the nodes are SLURM_JOB_NODELIST, compressed (node[01-03,07],gpu1); how many tasks each of
// them is to have stands, in the same order, in SLURM_TASKS_PER_NODE (2(x3),1).
#include <algorithm>
#include <utility>

#include "base/slurm_notation.h"
#include "base/text.h"
#include "launch/hosts/allocation_variables.h"
#include "launch/hosts/host_list.h"

namespace farandole::launch::hosts {
namespace {

Result<std::vector<std::string>> parseNodes(const Variable& variable) {
  auto items = splitHostList(variable.value);
  if (!items.ok()) return badVariable(variable, items.status().message());
  std::vector<std::string> nodes;
  for (std::string_view item : *items) {
    auto names = expandHostRange(item);
    if (!names.ok()) return badVariable(variable, names.status().message());
    for (std::string& name : *names) {
      if (Status status = checkHostName(name); !status.ok()) {
        return badVariable(variable, status.message());
      }
      nodes.push_back(std::move(name));
    }
    if (nodes.size() > static_cast<std::size_t>(kMostHosts)) {
      return badVariable(variable, "more than " + std::to_string(kMostHosts) + " nodes");
    }
  }
  return nodes;
}

Result<int> parseCount(const Variable& variable) {
  const auto count = parseDigits(variable.value);
  if (!count || *count < 1 || *count > kMostHosts) {
    return badVariable(variable, "not a number from 1 to " + std::to_string(kMostHosts));
  }
  return static_cast<int>(*count);
}

// The tasks of each node: asked for, or else as many as its CPUs allow, or else 1.
Result<std::vector<int>> tasksPerNode(const GetEnv& getEnv, const Variable& list,
                                      std::size_t nodes) {
  const auto tasks = firstSet(getEnv, {"SLURM_TASKS_PER_NODE"});
  const auto equal = firstSet(getEnv, {"SLURM_NTASKS_PER_NODE"});
  const auto cpus = firstSet(getEnv, {"SLURM_JOB_CPUS_PER_NODE"});
  if (!tasks && equal) {
    auto count = parseCount(*equal);
    if (!count.ok()) return count.status();
    return std::vector<int>(nodes, *count);
  }
  if (!tasks && !cpus) return std::vector<int>(nodes, 1);
  const Variable& source = tasks ? *tasks : *cpus;
  auto counts = parsePerNodeCounts(source);
  if (!counts.ok()) return counts.status();
  if (counts->size() != nodes) {
    return badVariable(source, "it speaks of " + countOf(static_cast<int>(counts->size()), "node") +
                                   ", but " + list.shown() + " names " + std::to_string(nodes));
  }
  const auto perTask = firstSet(getEnv, {"SLURM_CPUS_PER_TASK"});
  if (!tasks && perTask) {
    auto divisor = parseCount(*perTask);
    if (!divisor.ok()) return divisor.status();
    for (int& count : *counts) count = std::max(1, count / *divisor);
  }
  return counts;
}

}  // namespace

Result<std::vector<int>> parsePerNodeCounts(const Variable& variable) {
  auto counts = expandCounts(variable.value);
  if (!counts.ok()) return badVariable(variable, counts.status().message());
  return counts;
}

Result<std::optional<Allocation>> slurmAllocation(const GetEnv& getEnv) {
  const auto job = firstSet(getEnv, {"SLURM_JOB_ID", "SLURM_JOBID"});
  const auto list = firstSet(getEnv, {"SLURM_JOB_NODELIST", "SLURM_NODELIST"});
  if (!list && !job) return std::optional<Allocation>();
  if (!list) return badVariable(*job, "but SLURM_JOB_NODELIST is not set");
  if (const auto parts = firstSet(getEnv, {"SLURM_HET_SIZE"}); parts && parts->value != "1") {
    return badVariable(*parts, "heterogeneous jobs are not read");
  }
  auto nodes = parseNodes(*list);
  if (!nodes.ok()) return nodes.status();
  if (const auto number = firstSet(getEnv, {"SLURM_JOB_NUM_NODES"})) {
    auto count = parseCount(*number);
    if (!count.ok()) return count.status();
    if (static_cast<std::size_t>(*count) != nodes->size()) {
      return badVariable(*number, "but " + list->shown() + " names " +
                                      countOf(static_cast<int>(nodes->size()), "node"));
    }
  }
  auto tasks = tasksPerNode(getEnv, *list, nodes->size());
  if (!tasks.ok()) return tasks.status();
  HostList hosts;
  for (std::size_t i = 0; i < nodes->size(); ++i) {
    if ((*tasks)[i] > 0) hosts.addSlots({.name = std::move((*nodes)[i])}, (*tasks)[i]);
  }
  if (Status status = hosts.check(); !status.ok()) return badVariable(*list, status.message());
  Allocation allocation{"Slurm" + (job ? " job " + job->value : ""), hosts.take()};
  if (allocation.hosts.empty()) return badVariable(*list, "none of these nodes has a task");
  return std::optional<Allocation>(std::move(allocation));
}

}  // namespace farandole::launch::hosts
