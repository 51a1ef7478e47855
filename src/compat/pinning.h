// Which CPUs each local rank gets, as ipexrun divides a machine.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "compat/usable_cpus.h"

namespace farandole::compat {

struct PinningRequest {
  int ranks = 0;         // 0: as many as fit (coresPerRank > 0), otherwise 1
  int coresPerRank = 0;  // 0: even parts, the rest is unused; -1: even parts, nothing is unused
  int workers = 0;       // CPUs of each rank that are kept for communication threads
  bool workersOnSiblings = false;  // take those from the second hyperthreads
  bool useLogical = false;         // second hyperthreads compute, too
  bool useEfficient = false;       // E-cores compute, too
  bool bindNode = false;           // no rank spans two NUMA nodes
  std::vector<int> nodes = {};     // only these NUMA nodes; empty: all
  std::vector<int> cpus = {};      // exactly these CPUs; empty: all
};

struct RankCpus {
  std::vector<int> compute;  // ascending
  std::vector<int> workers;

  std::vector<int> all() const;  // both, ascending
};

struct Pinning {
  std::vector<RankCpus> ranks;     // empty: more ranks than CPUs, or less time: nobody is pinned
  int count = 0;                   // of ranks
  int unpinnedThreads = 1;         // of each rank when nobody is pinned
  std::vector<std::string> notes;  // wishes that could not be granted

  int threads() const;                 // for each rank: the smallest number of computing CPUs
  std::string pinDomain() const;       // "[0xff0,0xff0000]": I_MPI_PIN_DOMAIN
  std::string workerAffinity() const;  // "0,1,12,13": CCL_WORKER_AFFINITY; empty without workers
  std::string cpuSets() const;         // "0-11;12-23": --cpus of farandole run
};

// Pure. Too few CPUs for the workers is a note; too few for what was asked in numbers is an error.
Result<Pinning> pinRanks(const UsableCpus& topology, const PinningRequest& request);

// The numbers of "0,2-3", ascending; an error names the flag.
Result<std::vector<int>> parseNumbers(const std::string& flag, const std::string& text);

}  // namespace farandole::compat
