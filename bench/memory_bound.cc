#include "bench/memory_bound.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/reduce.h"
#include "bench/rank_side.h"

namespace farandole::bench {
namespace {

constexpr std::size_t kCachedSlot = 16 << 10;
constexpr std::size_t kStreamingSlot = 256 << 10;

// Where every rank's buffer of at least `bytes` lies in this process.
Result<std::vector<std::byte*>> everybodys(EngineDriver& driver, void* mine, std::size_t bytes) {
  machine::Neighbourhood& n = driver.neighbourhood();
  const auto size = static_cast<std::size_t>(n.size());
  const auto offset = static_cast<std::int64_t>(n.offsetOf(mine));
  std::vector<std::int64_t> offsets(size);
  const std::vector<std::int64_t> counts(size, 1);
  FARANDOLE_RETURN_IF_ERROR(driver.finish(
      driver.communicator().allgather(&offset, offsets.data(), counts, DType::kInt64)));
  std::vector<std::byte*> all;
  for (std::size_t i = 0; i < size; ++i) {
    all.push_back(n.at(static_cast<int>(i), static_cast<std::uint64_t>(offsets[i]), bytes));
    if (all.back() == nullptr) return Status::internal("a peer's buffer lies outside its arena");
  }
  return all;
}

struct Slice {
  std::size_t begin;
  std::size_t bytes;
};

// This rank's slice of `bytes`, in whole elements.
Slice sliceOf(std::size_t bytes, std::size_t width, int rank, int size) {
  const std::size_t count = std::max<std::size_t>(1, bytes / width);
  const std::size_t first = count * static_cast<std::size_t>(rank) / static_cast<std::size_t>(size);
  const std::size_t last =
      count * (static_cast<std::size_t>(rank) + 1) / static_cast<std::size_t>(size);
  return {first * width, (last - first) * width};
}

void sharedTraffic(const Job& job, const std::vector<std::byte*>& all, Slice slice, Store store) {
  std::vector<void*> to;
  std::vector<const void*> from;
  for (std::byte* buffer : all) {
    to.push_back(buffer + slice.begin);
    from.push_back(buffer + slice.begin);
  }
  const auto count = static_cast<std::int64_t>(slice.bytes / sizeOf(job.dtype));
  reduce(to, from, count, job.dtype, job.op, {}, store);
}

// One rank's traffic, piece by piece. `slots` are the ranks' slot areas; rank r's area holds one
// slot for each rank's part and one for its result.
void ordinaryTraffic(const Job& job, std::byte* own, const std::vector<std::byte*>& slots, int me,
                     std::size_t slot, Store store) {
  const auto size = static_cast<int>(slots.size());
  const std::size_t width = sizeOf(job.dtype);
  const Slice mine = sliceOf(job.bytes, width, me, size);
  const auto slotOf = [&](int rank, int part) {
    return slots[static_cast<std::size_t>(rank)] + static_cast<std::size_t>(part) * slot;
  };
  std::size_t longest = 0;
  for (int r = 0; r < size; ++r)
    longest = std::max(longest, sliceOf(job.bytes, width, r, size).bytes);
  std::vector<const void*> from(slots.size());
  for (std::size_t at = 0; at < longest; at += slot) {
    for (int r = 0; r < size; ++r) {  // publish what others reduce
      const Slice theirs = sliceOf(job.bytes, width, r, size);
      if (r == me || at >= theirs.bytes) continue;
      copy(slotOf(me, r), own + theirs.begin + at, std::min(slot, theirs.bytes - at), store);
    }
    if (at < mine.bytes) {  // reduce the own part into place and into the result slot
      for (int r = 0; r < size; ++r) {
        from[static_cast<std::size_t>(r)] = r == me ? own + mine.begin + at : slotOf(r, me);
      }
      void* to[2] = {own + mine.begin + at, slotOf(me, size)};
      const std::size_t bytes = std::min(slot, mine.bytes - at);
      reduce(to, from, static_cast<std::int64_t>(bytes / width), job.dtype, job.op, {}, store);
    }
    for (int r = 0; r < size; ++r) {  // pick the rest up
      const Slice theirs = sliceOf(job.bytes, width, r, size);
      if (r == me || at >= theirs.bytes) continue;
      copy(own + theirs.begin + at, slotOf(r, size), std::min(slot, theirs.bytes - at), store);
    }
  }
}

// The fastest of several ways to do it.
Result<double> fastest(const Job& job, EngineDriver& driver,
                       const std::vector<std::function<void()>>& ways) {
  const auto barrier = [&driver] { return driver.finish(driver.communicator().barrier()); };
  double best = 0;
  for (const auto& way : ways) {
    auto seconds = timeLoop(
        job,
        [&way] {
          way();
          return Status();
        },
        barrier);
    if (!seconds.ok()) return seconds;
    best = best == 0 ? *seconds : std::min(best, *seconds);
  }
  return best;
}

Result<double> sharedBound(const Job& job, EngineDriver& driver, Buffers& buffers) {
  auto mine = buffers.get(Memory::kShared, Buffers::kIn, job.bytes);
  if (!mine.ok()) return mine.status();
  auto all = everybodys(driver, *mine, std::max(job.bytes, sizeOf(job.dtype)));
  if (!all.ok()) return all.status();
  const machine::Neighbourhood& n = driver.neighbourhood();
  const Slice slice = sliceOf(job.bytes, sizeOf(job.dtype), n.rank(), n.size());
  return fastest(job, driver,
                 {[&] { sharedTraffic(job, *all, slice, Store::kStreaming); },
                  [&] { sharedTraffic(job, *all, slice, Store::kCached); }});
}

Result<double> ordinaryBound(const Job& job, EngineDriver& driver, Buffers& buffers) {
  const machine::Neighbourhood& n = driver.neighbourhood();
  const std::size_t area = kStreamingSlot * (static_cast<std::size_t>(n.size()) + 1);
  auto slotMemory = buffers.get(Memory::kShared, Buffers::kOut, area);
  if (!slotMemory.ok()) return slotMemory.status();
  auto slots = everybodys(driver, *slotMemory, area);
  if (!slots.ok()) return slots.status();
  auto memory = buffers.get(Memory::kOrdinary, Buffers::kIn, job.bytes);
  if (!memory.ok()) return memory.status();
  auto* own = static_cast<std::byte*>(*memory);
  return fastest(
      job, driver,
      {[&] { ordinaryTraffic(job, own, *slots, n.rank(), kCachedSlot, Store::kCached); },
       [&] { ordinaryTraffic(job, own, *slots, n.rank(), kStreamingSlot, Store::kStreaming); }});
}

}  // namespace

Result<double> memoryBound(const Job& job, EngineDriver& driver, Buffers& buffers) {
  const FpModeGuard mode;
  return job.memory == Memory::kShared ? sharedBound(job, driver, buffers)
                                       : ordinaryBound(job, driver, buffers);
}

}  // namespace farandole::bench
