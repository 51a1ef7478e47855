// Which algorithm is used for which operation, size and number of members: the whole table.
//
// That small and large arrays want different algorithms is the lesson of R. Thakur, R. Rabenseifner
// and W. Gropp, "Optimization of Collective Communication Operations in MPICH", International
// Journal of High Performance Computing Applications 19(1), 2005.
//
// Every member must come to the same choice: it depends on nothing but the arguments that all of
// them pass. No choice changes a bit of a result.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "collective/communicator.h"

namespace farandole::collective::link {

enum class Algorithm {
  kLocal,     // one member: nothing travels
  kExchange,  // everybody sends all it has to everybody: one step
  kBruck,     // the same in log2(members) steps: each step passes on all that has arrived
  kSlices,    // everybody reduces one slice: inputs go straight to its owner, results to everybody
  kRoot,      // inputs go straight to the root, which reduces them
  kDirect,    // every part goes straight to where it belongs
  kTree,      // a binomial tree
  kChain,     // from member to member, in chunks
};
std::string_view name(Algorithm algorithm);

// Bytes as they travel. For allgather: of all members together.
Algorithm chooseAllreduce(int members, std::size_t bytes);
Algorithm chooseReduce(int members, std::size_t bytes);
Algorithm chooseAllgather(int members, std::size_t bytes);
Algorithm chooseBroadcast(int members, std::size_t bytes);
Algorithm chooseBarrier(int members);

// Bytes of a chunk of a pipelined reduction: enough of them to overlap receiving, reducing and
// sending, few enough that a message's cost does not count.
std::size_t chunkBytes(int members, std::size_t sliceBytes);
// The same for a chain.
std::size_t chainChunkBytes(std::size_t bytes);

// The table for people: one row per operation, range of members and range of sizes.
struct AlgorithmRow {
  std::string_view operation;
  int fewest = 1;
  int most = 0;           // 0: any number
  std::size_t least = 0;  // bytes
  std::size_t below = 0;  // 0: no limit
  std::string_view algorithm;
  std::string_view description;
};
std::vector<AlgorithmRow> netAlgorithms();

}  // namespace farandole::collective::link
