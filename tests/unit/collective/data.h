// Test data: what each rank contributes, computable by every rank, and the plain reference results.
#pragma once

#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "base/reduce.h"
#include "base/types.h"

namespace farandole::testing {

using Bytes = std::vector<std::byte>;

// Elements that every operator can digest without overflow to infinity; the same for equal
// arguments on every rank.
Bytes makeData(DType dtype, std::int64_t count, std::uint64_t seed, int rank);

// Every rank's data reduced in rank order, in one go and with the plainest kernels.
Bytes reduced(const std::vector<Bytes>& inputs, std::int64_t count, DType dtype, ReduceOp op,
              Scale scale);

// Where two byte strings differ first, for messages; -1 if they are equal.
std::int64_t firstDifference(const void* a, const void* b, std::size_t bytes);

// How many random cases to try. Under ThreadSanitizer, which needs ten times as long, the paths
// count, and a few cases show them.
#if defined(FARANDOLE_TSAN)
constexpr int casesOf(int cases) { return cases / 4; }
#else
constexpr int casesOf(int cases) { return cases; }
#endif

// Small random choices that are the same on all ranks.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : engine_(seed) {}
  std::int64_t upTo(std::int64_t most) {  // 0 … most
    return static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(most + 1));
  }
  bool coin() { return upTo(1) == 1; }
  template <typename T, std::size_t N>
  const T& pick(const T (&choices)[N]) {
    return choices[engine_() % N];
  }
  std::uint64_t seed() { return engine_(); }

 private:
  std::mt19937_64 engine_;
};

}  // namespace farandole::testing
