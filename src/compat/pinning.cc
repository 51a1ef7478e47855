#include "compat/pinning.h"

#include <algorithm>
#include <set>

namespace farandole::compat {
namespace {

using Cpus = std::vector<UsableCpu>;

bool contains(const std::vector<int>& list, int value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// The CPUs that may compute, neighbours beside each other.
Result<Cpus> available(const UsableCpus& topology, const PinningRequest& request) {
  for (const int cpu : request.cpus) {
    if (std::none_of(topology.cpus.begin(), topology.cpus.end(),
                     [&](const UsableCpu& known) { return known.cpu == cpu; })) {
      return Status::invalid("CPU " + std::to_string(cpu) +
                             " is not among those that this job may use");
    }
  }
  for (const int node : request.nodes) {
    if (!contains(topology.nodes(), node)) {
      return Status::invalid("there is no NUMA node " + std::to_string(node) +
                             " that this job may use");
    }
  }
  Cpus cpus;
  for (const UsableCpu& cpu : topology.cpus) {
    if (!request.cpus.empty()) {
      if (contains(request.cpus, cpu.cpu)) cpus.push_back(cpu);
      continue;
    }
    if (!request.nodes.empty() && !contains(request.nodes, cpu.node)) continue;
    if (!request.useLogical && !cpu.physical) continue;
    if (!request.useEfficient && cpu.efficient) continue;
    cpus.push_back(cpu);
  }
  std::stable_sort(cpus.begin(), cpus.end(), [](const UsableCpu& a, const UsableCpu& b) {
    return a.node != b.node ? a.node < b.node : a.core < b.core;
  });
  return cpus;
}

// How many CPUs each rank's part has: ranks × (computing + reserved).
struct Shares {
  int ranks = 1;
  int size = 0;
  int extra = 0;  // so many ranks get one more
};

int nodesOf(const Cpus& cpus) {
  std::set<int> nodes;
  for (const UsableCpu& cpu : cpus) nodes.insert(cpu.node);
  return std::max(static_cast<int>(nodes.size()), 1);
}

Shares divide(const Cpus& cpus, const PinningRequest& request) {
  const int total = static_cast<int>(cpus.size());
  Shares shares;
  if (request.coresPerRank > 0) {
    shares.size = request.coresPerRank + (request.workersOnSiblings ? 0 : request.workers);
    const int nodes = request.bindNode ? nodesOf(cpus) : 1;
    shares.ranks = request.ranks > 0 ? request.ranks : total / nodes / shares.size * nodes;
    return shares;
  }
  shares.ranks = std::max(request.ranks, 1);
  if (request.bindNode) {
    const int nodes = nodesOf(cpus);
    const int perNode = (shares.ranks + nodes - 1) / nodes;
    shares.size = total / nodes / perNode;
  } else {
    shares.size = total / shares.ranks;
    if (request.coresPerRank < 0) shares.extra = total % shares.ranks;
  }
  return shares;
}

// The CPUs from which the ranks' parts are cut one after the other: with bindNode, what is left
// over in a node is skipped.
Cpus cuttable(const Cpus& cpus, const Shares& shares, bool bindNode) {
  if (!bindNode || shares.size <= 0) return cpus;
  Cpus kept;
  for (std::size_t begin = 0; begin < cpus.size();) {
    std::size_t end = begin;
    while (end < cpus.size() && cpus[end].node == cpus[begin].node) ++end;
    const std::size_t size = static_cast<std::size_t>(shares.size);
    const std::size_t whole = (end - begin) / size * size;
    kept.insert(kept.end(), cpus.begin() + static_cast<std::ptrdiff_t>(begin),
                cpus.begin() + static_cast<std::ptrdiff_t>(begin + whole));
    begin = end;
  }
  return kept;
}

// Second hyperthreads of these CPUs' cores, one per core.
std::vector<int> siblings(const UsableCpus& topology, const Cpus& part) {
  std::vector<int> found;
  for (const UsableCpu& cpu : part) {
    for (const UsableCpu& other : topology.cpus) {
      if (other.core == cpu.core && !other.physical) {
        found.push_back(other.cpu);
        break;
      }
    }
  }
  return found;
}

RankCpus reserve(const UsableCpus& topology, const Cpus& part, int workers, bool onSiblings) {
  RankCpus rank;
  for (const UsableCpu& cpu : part) rank.compute.push_back(cpu.cpu);
  std::sort(rank.compute.begin(), rank.compute.end());
  if (onSiblings) {
    rank.workers = siblings(topology, part);
    rank.workers.resize(
        std::min<std::size_t>(rank.workers.size(), static_cast<std::size_t>(workers)));
  } else {
    rank.workers.assign(rank.compute.begin(), rank.compute.begin() + workers);
    rank.compute.erase(rank.compute.begin(), rank.compute.begin() + workers);
  }
  return rank;
}

}  // namespace

Result<Pinning> pinRanks(const UsableCpus& topology, const PinningRequest& request) {
  auto cpus = available(topology, request);
  if (!cpus.ok()) return cpus.status();
  PinningRequest granted = request;
  Pinning pinning;
  if (granted.workersOnSiblings && static_cast<int>(siblings(topology, *cpus).size()) <
                                       granted.workers * std::max(granted.ranks, 1)) {
    pinning.notes.push_back(
        "there are too few second hyperthreads for communication threads: first ones are kept");
    granted.workersOnSiblings = false;
  }
  Shares shares = divide(*cpus, granted);
  const auto tooMany = [&] {
    return shares.ranks * static_cast<long>(shares.size) >
           static_cast<long>(cuttable(*cpus, shares, granted.bindNode).size());
  };
  const bool noRoom = granted.coresPerRank > 0 ? tooMany() : shares.size <= granted.workers;
  if (granted.workers > 0 && !granted.workersOnSiblings && noRoom) {
    pinning.notes.push_back("too few cores (" + std::to_string(cpus->size()) + ") to keep " +
                            std::to_string(granted.workers) + " of each of " +
                            std::to_string(shares.ranks) +
                            " ranks for communication: none are kept");
    granted.workers = 0;
    shares = divide(*cpus, granted);
  }
  pinning.count = shares.ranks;
  if (granted.coresPerRank > 0 && (tooMany() || shares.ranks == 0)) {
    return Status::invalid(std::to_string(std::max(shares.ranks, 1)) + " times " +
                           std::to_string(shares.size) + " cores were asked for, and there are " +
                           std::to_string(cpus->size()) + ": ask for fewer");
  }
  const long used = shares.ranks * static_cast<long>(shares.size) + shares.extra;
  if (topology.quota > 0 && topology.quota < used) {
    pinning.notes.push_back("this job is granted the time of " + std::to_string(topology.quota) +
                            " of " + std::to_string(used) +
                            " cores: ranks get fewer threads and are not pinned");
    pinning.unpinnedThreads = std::max(topology.quota / std::max(shares.ranks, 1), 1);
    return pinning;
  }
  const Cpus pool = cuttable(*cpus, shares, granted.bindNode);
  if (shares.size <= 0 || tooMany()) {
    pinning.notes.push_back("more ranks (" + std::to_string(shares.ranks) + ") than cores (" +
                            std::to_string(cpus->size()) + "): they are not pinned");
    return pinning;
  }
  auto next = pool.begin();
  for (int rank = 0; rank < shares.ranks; ++rank) {
    const auto end = next + shares.size + (rank < shares.extra ? 1 : 0);
    pinning.ranks.push_back(
        reserve(topology, Cpus(next, end), granted.workers, granted.workersOnSiblings));
    next = end;
  }
  return pinning;
}

}  // namespace farandole::compat
