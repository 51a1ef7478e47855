#include "base/reduce.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstring>

#include "base/reduce_kernels.h"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace farandole {
namespace {

static_assert(static_cast<std::size_t>(DType::kBool) + 1 == kKernelDTypes);
static_assert(static_cast<std::size_t>(ReduceOp::kBxor) + 1 == kKernelOps);
static_assert(static_cast<int>(ReduceOp::kSum) == 0 && static_cast<int>(ReduceOp::kMin) == 2 &&
              static_cast<int>(ReduceOp::kMax) == 3 && static_cast<int>(ReduceOp::kProduct) == 4 &&
              static_cast<int>(ReduceOp::kBand) == 5 && static_cast<int>(ReduceOp::kBor) == 6);
static_assert(static_cast<int>(DType::kUint8) == 0 && static_cast<int>(DType::kInt8) == 1 &&
              static_cast<int>(DType::kUint16) == 2 && static_cast<int>(DType::kInt16) == 3 &&
              static_cast<int>(DType::kInt32) == 4 && static_cast<int>(DType::kInt64) == 5 &&
              static_cast<int>(DType::kFloat16) == 6 && static_cast<int>(DType::kBfloat16) == 7 &&
              static_cast<int>(DType::kFloat32) == 8 && static_cast<int>(DType::kFloat64) == 9);
static_assert(kDotBlock == static_cast<std::int64_t>(kDotBlockElements));

constexpr std::size_t kLine = 64;
// Bytes computed before they are handed on, measured: long enough for the kernels' loops, short
// enough that lines written past the caches are not yet far from those read (in place).
constexpr std::size_t kTile = 4096;
constexpr std::size_t kStreamingTile = 1024;

// Streaming stores are weakly ordered: without it a flag stored afterwards could be seen first.
void storeFence() {
#if defined(__x86_64__)
  _mm_sfence();
#else
  std::atomic_thread_fence(std::memory_order_release);
#endif
}

std::size_t misalignment(const void* p) { return reinterpret_cast<std::uintptr_t>(p) % kLine; }

std::byte* at(void* p, std::size_t offset) { return static_cast<std::byte*>(p) + offset; }

// One reduction of non-complex elements, in the kernels' terms.
struct Job {
  const Kernels& kernels;
  TileKernel tile;
  const Scaling* scaling;
  std::span<void* const> destinations;
  std::span<const void* const> sources;
  std::size_t elementSize;

  SourceList from(std::size_t offset) const { return {sources.data(), sources.size(), offset}; }
};

// Bytes [begin, end) with ordinary stores: into the first destination, and from there, while it is
// in L1, into the others.
void reduceCached(const Job& job, std::size_t begin, std::size_t end) {
  const std::size_t step = job.destinations.size() == 1 ? end - begin : kTile;
  for (std::size_t offset = begin; offset < end; offset += step) {
    const std::size_t bytes = std::min(step, end - offset);
    std::byte* const first = at(job.destinations[0], offset);
    job.tile(first, job.from(offset), bytes / job.elementSize, job.scaling);
    for (void* other : job.destinations.subspan(1)) {
      if (other != job.destinations[0]) std::memcpy(at(other, offset), first, bytes);
    }
  }
}

// Bytes [begin, end) past the caches: computed in a buffer in L1, streamed to every destination.
// The blocks are cut where the first destination's cache lines end, as nearly as elements allow.
void reduceStreaming(const Job& job, std::size_t begin, std::size_t end) {
  alignas(kLine) std::byte buffer[kStreamingTile];
  const std::size_t ahead = misalignment(at(job.destinations[0], begin));
  std::size_t bytes = kStreamingTile - ahead / job.elementSize * job.elementSize;
  for (std::size_t offset = begin; offset < end; offset += bytes, bytes = kStreamingTile) {
    bytes = std::min(bytes, end - offset);
    job.tile(buffer, job.from(offset), bytes / job.elementSize, job.scaling);
    for (void* destination : job.destinations) {
      job.kernels.streamCopy(at(destination, offset), buffer, bytes);
    }
  }
}

// float32 sums go from registers to all destinations; what the fan leaves goes the general way.
void sumFloat32(const Job& job, std::size_t end, Store store) {
  const auto fan = [&](std::size_t begin) {
    const std::size_t done = job.kernels.sumFloat32(
        job.destinations.data(), job.destinations.size(), job.from(begin),
        (end - begin) / sizeof(float), job.scaling, store == Store::kStreaming);
    reduceCached(job, begin + done * sizeof(float), end);
  };
  if (store == Store::kCached) return fan(0);

  const std::size_t ahead = misalignment(job.destinations[0]);
  const bool together =
      ahead % sizeof(float) == 0 &&
      std::ranges::all_of(job.destinations, [&](void* d) { return misalignment(d) == ahead; });
  if (!together) return reduceStreaming(job, 0, end);
  const std::size_t head = std::min((kLine - ahead) % kLine, end);
  reduceCached(job, 0, head);
  fan(head);
}

void copyToAll(std::span<void* const> destinations, const void* source, std::size_t bytes,
               Store store) {
  for (void* destination : destinations) copy(destination, source, bytes, store);
}

}  // namespace

void reduce(std::span<void* const> destinations, std::span<const void* const> sources,
            std::int64_t count, DType dtype, ReduceOp op, const Scale& scale, Store store) {
  if (count <= 0 || destinations.empty() || sources.empty()) return;
  std::size_t bytes = static_cast<std::size_t>(count) * sizeOf(dtype);
  if (dtype == DType::kComplex64) dtype = DType::kFloat32;   // a sum of complex numbers is the
  if (dtype == DType::kComplex128) dtype = DType::kFloat64;  // sums of their parts

  const bool plain = scale.identity() || dtype == DType::kBool;
  if (plain && sources.size() == 1 && dtype != DType::kBool) {
    return copyToAll(destinations, sources[0], bytes, store);
  }
  const Kernels& kernels = activeKernels();
  const auto row = static_cast<std::size_t>(dtype);
  const auto column = static_cast<std::size_t>(op);
  assert(column < kKernelOps);
  const Scaling scaling{scale.pre, scale.post, static_cast<double>(scale.divisor)};
  const Job job{kernels,
                plain ? kernels.plain[row][column] : kernels.scaled[row][column],
                plain ? nullptr : &scaling,
                destinations,
                sources,
                sizeOf(dtype)};
  assert(job.tile != nullptr);

  if (dtype == DType::kFloat32 && op == ReduceOp::kSum) {
    sumFloat32(job, bytes, store);
  } else if (store == Store::kCached) {
    reduceCached(job, 0, bytes);
  } else {
    reduceStreaming(job, 0, bytes);
  }
  if (store == Store::kStreaming) storeFence();
}

void copy(void* destination, const void* source, std::size_t bytes, Store store) {
  if (bytes == 0 || destination == source) return;
  if (store == Store::kCached) {
    std::memcpy(destination, source, bytes);
    return;
  }
  activeKernels().streamCopy(destination, source, bytes);
  storeFence();
}

void dot3(const void* a, const void* b, std::int64_t count, DType dtype, double out[3]) {
  assert(isFloating(dtype));
  if (count <= 0) return;
  const auto index = static_cast<std::size_t>(dtype) - static_cast<std::size_t>(DType::kFloat16);
  activeKernels().dot3[index](a, b, static_cast<std::size_t>(count), out);
}

void combine(void* result, const void* a, double wa, const void* b, double wb, std::int64_t count,
             DType dtype) {
  assert(isFloating(dtype));
  if (count <= 0) return;
  const auto index = static_cast<std::size_t>(dtype) - static_cast<std::size_t>(DType::kFloat16);
  activeKernels().combine[index](result, a, wa, b, wb, static_cast<std::size_t>(count));
}

}  // namespace farandole
