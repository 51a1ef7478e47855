// Which CPUs each rank of a host is bound to, and how many threads it should start.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/text.h"
#include "process/cpu_list.h"
#include "process/cpu_topology.h"

namespace farandole::launch::plan {

enum class BindTo {
  kNone,
  kCore,  // the physical cores divided evenly, neighbours together; what does not divide stays free
  kNuma,  // whole nodes, dealt out round robin; with fewer ranks than nodes a rank has several
};

// "core", "numa" or "none".
inline std::string_view bindToWord(BindTo bindTo) {
  switch (bindTo) {
    case BindTo::kNone: break;
    case BindTo::kCore: return "core";
    case BindTo::kNuma: return "numa";
  }
  return "none";
}
inline Result<BindTo> parseBindTo(std::string_view word) {
  for (const BindTo bindTo : {BindTo::kCore, BindTo::kNuma, BindTo::kNone}) {
    if (word == bindToWord(bindTo)) return bindTo;
  }
  return Status::invalid("--bind-to takes core, numa or none, not " + quoted(word));
}

struct Binding {
  std::vector<process::CpuSet> sets;  // by local rank; an empty set: not bound
  std::string note;                   // for the user, if not empty: why it is not as asked
};

Binding bindingFor(BindTo bindTo, int localRanks, const process::CpuTopology& topology,
                   const process::CpuSet& allowed);

// The sets that --cpus gives: an error if there are fewer than ranks or none of a set's CPUs is
// allowed; CPUs that are not allowed are dropped with a note.
Result<Binding> bindingFromSets(const std::vector<process::CpuSet>& sets, int localRanks,
                                const process::CpuSet& allowed);

// The threads of each rank: the physical cores it has, shared with the ranks on the same ones, but
// together not more than `usableCpus` (allowedCpus(): a cgroup may allow less time than CPUs); at
// least 1.
std::vector<int> threadsPerRank(const Binding& binding, const process::CpuTopology& topology,
                                const process::CpuSet& allowed, int usableCpus);

}  // namespace farandole::launch::plan
