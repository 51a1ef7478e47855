// Job: one measurement as it is asked of every rank of a contender, and the line in which it
// travels. The peers' programs (bench/peers) read the same lines; see peers/peer_wire.h.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/types.h"

namespace farandole::bench {

enum class Work {
  kAllreduce,
  kAllgather,
  kBroadcast,
  kAlltoall,
  kReducescatter,
  kReduce,
  kGather,
  kScatter,
  kBarrier,
  kResnet50,  // allreduce of the model's gradients, one operation each
  kVgg16,
  kBound,  // the memory traffic of an allreduce without any synchronisation
};
inline constexpr int kWorkCount = 12;
std::string_view name(Work work);
std::optional<Work> workFromName(std::string_view text);

enum class Memory { kOrdinary, kShared };
std::string_view name(Memory memory);

// What a benchmark counts as moved per rank, relative to bytes / time (the convention of the
// well-known collective benchmarks): 2(n-1)/n for an allreduce, and so on.
double busFactor(Work work, int ranks);

struct Job {
  Work work = Work::kAllreduce;
  DType dtype = DType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  Memory memory = Memory::kOrdinary;
  std::size_t bytes = 0;
  int warmup = 1;
  int iterations = 1;
  bool ordered = false;  // ours by name: with the promise of a common order
  bool check = false;    // compare one operation's result with what it must be, before the timing

  std::string line() const;  // "run allreduce float32 sum ordinary 1024 1 10 0", "… ordered"
  static Result<Job> parse(std::string_view line);
};

}  // namespace farandole::bench
