// Reductions of a set with one member: scaled copies, the same for every engine.
#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include "collective/operation.h"
#include "collective/segments.h"

namespace farandole::collective {

// out = in * pre * post / divisor, piece by piece, as far as a budget goes at a time.
class ScaledCopy {
 public:
  ScaledCopy(std::span<const Piece> pieces, const Reduction& reduction)
      : segments_(pieces, sizeOf(reduction.dtype)), reduction_(reduction) {}

  Advance advance(Budget& budget);

 private:
  void apply(const void* in, void* out, std::int64_t count) const;

  const Segments segments_;
  const Reduction reduction_;
  std::int64_t at_ = 0;
};

// The same as an operation of an engine; Base is the class of its operations.
template <typename Base>
class LocalReduction : public Base {
 public:
  template <typename... Arguments>
  LocalReduction(std::span<const Piece> pieces, const Reduction& reduction,
                 Arguments&&... arguments)
      : Base(std::forward<Arguments>(arguments)...), copy_(pieces, reduction) {}

 protected:
  Advance advance(Budget& budget) final { return copy_.advance(budget); }

 private:
  ScaledCopy copy_;
};

// What a plain copy of bytes is as a reduction.
inline constexpr Reduction kPlainCopy{DType::kUint8, ReduceOp::kSum, {}};

}  // namespace farandole::collective
