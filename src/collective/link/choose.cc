#include "collective/link/choose.h"

#include <algorithm>

namespace farandole::collective::link {
namespace {

// Up to here everybody talks to everybody in one step: a step costs about as much as sending and
// receiving three small messages (two system calls and a change of threads each).
constexpr int kFew = 4;

// Two members exchange everything as long as that takes less than a second step: the bytes are the
// same either way, so this depends on how long reducing twice as much takes against a message's
// way there. Measured between two laboratory hosts: 512 KiB in 190 us instead of 210 to 300, 1 MiB
// in 430 instead of 370.
constexpr std::size_t kPairExchange = (std::size_t{512} << 10) + 1;
// Three or four exchange up to twice the bytes they need to: at 1 to 10 Gbit/s 16 KiB take 13 to
// 130 us, a step 50 to 100.
constexpr std::size_t kFewExchange = std::size_t{16} << 10;
// All that Bruck's steps carry together stays within what the mesh sends unasked.
constexpr std::size_t kBruckTotal = std::size_t{64} << 10;

// Below, a tree's few steps beat a chain's many; above, a tree sends all bytes several times.
constexpr std::size_t kTreeBytes = std::size_t{64} << 10;

// A chunk: several of them are in flight per member, so that the memory for them and what is read
// again from it stay within the second-level cache.
constexpr std::size_t kSmallestChunk = std::size_t{64} << 10;
constexpr std::size_t kLargestChunk = std::size_t{512} << 10;
constexpr std::size_t kChunksTogether = std::size_t{1} << 20;
constexpr std::size_t kChunksPerSlice = 2;

constexpr std::size_t kLargestChainChunk = std::size_t{256} << 10;

}  // namespace

std::string_view name(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::kLocal: return "local";
    case Algorithm::kExchange: return "exchange";
    case Algorithm::kBruck: return "bruck";
    case Algorithm::kSlices: return "slices";
    case Algorithm::kRoot: return "root";
    case Algorithm::kDirect: return "direct";
    case Algorithm::kTree: return "tree";
    case Algorithm::kChain: return "chain";
  }
  return "";
}

Algorithm chooseAllreduce(int members, std::size_t bytes) {
  if (members == 1) return Algorithm::kLocal;
  if (members == 2) return bytes < kPairExchange ? Algorithm::kExchange : Algorithm::kSlices;
  if (members <= kFew) return bytes < kFewExchange ? Algorithm::kExchange : Algorithm::kSlices;
  const std::size_t limit = kBruckTotal / static_cast<std::size_t>(members);
  return bytes < limit ? Algorithm::kBruck : Algorithm::kSlices;
}

Algorithm chooseReduce(int members, std::size_t bytes) {
  if (members == 1) return Algorithm::kLocal;
  return members == 2 || bytes < kTreeBytes ? Algorithm::kRoot : Algorithm::kSlices;
}

Algorithm chooseAllgather(int members, std::size_t bytes) {
  if (members == 1) return Algorithm::kLocal;
  return members > kFew && bytes < kBruckTotal ? Algorithm::kBruck : Algorithm::kDirect;
}

Algorithm chooseBroadcast(int members, std::size_t bytes) {
  if (members == 1) return Algorithm::kLocal;
  return members > 2 && bytes < kTreeBytes ? Algorithm::kTree : Algorithm::kChain;
}

Algorithm chooseBarrier(int members) {
  if (members == 1) return Algorithm::kLocal;
  return members <= kFew ? Algorithm::kExchange : Algorithm::kBruck;
}

std::size_t chunkBytes(int members, std::size_t sliceBytes) {
  const std::size_t others = static_cast<std::size_t>(std::max(1, members - 1));
  const std::size_t most = std::clamp(kChunksTogether / others, kSmallestChunk, kLargestChunk);
  return std::clamp(sliceBytes / kChunksPerSlice, kSmallestChunk, most);
}

std::size_t chainChunkBytes(std::size_t bytes) {
  return std::clamp(bytes / 8, kSmallestChunk, kLargestChainChunk);
}

std::vector<AlgorithmRow> netAlgorithms() {
  constexpr std::string_view kExchangeText = "everybody sends everything to everybody, one step";
  constexpr std::string_view kBruckText =
      "everything reaches everybody in log2(n) steps of growing messages";
  constexpr std::string_view kSlicesText =
      "inputs straight to the owner of each slice, results straight back, in overlapping chunks";
  constexpr std::string_view kDirectText = "every part straight to where it belongs";
  return {
      {"allreduce", 2, 2, 0, kPairExchange, "exchange", kExchangeText},
      {"allreduce", 2, 2, kPairExchange, 0, "slices", kSlicesText},
      {"allreduce", 3, kFew, 0, kFewExchange, "exchange", kExchangeText},
      {"allreduce", 3, kFew, kFewExchange, 0, "slices", kSlicesText},
      {"allreduce", kFew + 1, 0, 0, kBruckTotal, "bruck",
       "everything reaches everybody in log2(n) steps; the limit is for all inputs together"},
      {"allreduce", kFew + 1, 0, kBruckTotal, 0, "slices", kSlicesText},
      {"adasum", 2, 0, 0, 0, "direct", "all inputs to everybody, the same tree everywhere"},
      {"reducescatter", 2, 0, 0, 0, "slices", "inputs straight to their owners, in chunks"},
      {"reduce", 2, 2, 0, 0, "root", "inputs straight to the root, in chunks"},
      {"reduce", 3, 0, 0, kTreeBytes, "root", "inputs straight to the root, in chunks"},
      {"reduce", 3, 0, kTreeBytes, 0, "slices",
       "inputs straight to the owner of each slice, results to the root, in overlapping chunks"},
      {"allgather", 2, kFew, 0, 0, "direct", kDirectText},
      {"allgather", kFew + 1, 0, 0, kBruckTotal, "bruck", kBruckText},
      {"allgather", kFew + 1, 0, kBruckTotal, 0, "direct", kDirectText},
      {"broadcast", 2, 2, 0, 0, "chain", "from member to member, in chunks"},
      {"broadcast", 3, 0, 0, kTreeBytes, "tree", "a binomial tree"},
      {"broadcast", 3, 0, kTreeBytes, 0, "chain", "from member to member, in chunks"},
      {"alltoall", 2, 0, 0, 0, "direct", kDirectText},
      {"gather", 2, 0, 0, 0, "direct", kDirectText},
      {"scatter", 2, 0, 0, 0, "direct", kDirectText},
      {"barrier", 2, kFew, 0, 0, "exchange", kExchangeText},
      {"barrier", kFew + 1, 0, 0, 0, "bruck", kBruckText},
  };
}

}  // namespace farandole::collective::link
