// Pattern: known contents for checked operations. Element i of rank r is 1 + (i + r) mod 3, small
// enough to be exact in every element type for up to 64 ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/status.h"
#include "base/types.h"

namespace farandole::bench {

// Period 3. Immutable after construction.
class Pattern {
 public:
  // What rank contributes.
  static Pattern ofRank(DType dtype, int rank);
  // What all ranks' contributions reduce to (sum, min or max).
  static Pattern reduced(DType dtype, ReduceOp op, int ranks);
  // Types and operators the two above know.
  static bool knows(DType dtype, ReduceOp op);

  // Writes the elements first … first+count-1 of the pattern.
  void fill(void* data, std::int64_t count, std::int64_t first = 0) const;
  // Names the first element that differs.
  Status verify(const void* data, std::int64_t count, std::int64_t first = 0) const;

 private:
  Pattern(DType dtype, const std::int64_t values[3]);
  std::size_t width_;
  std::vector<std::byte> block_;  // a multiple of the period, and three elements more
};

}  // namespace farandole::bench
