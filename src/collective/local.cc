#include "collective/local.h"

#include <algorithm>

namespace farandole::collective {
namespace {

constexpr std::size_t kBlockBytes = std::size_t{1} << 20;

}  // namespace

Advance ScaledCopy::advance(Budget& budget) {
  const auto block = static_cast<std::int64_t>(kBlockBytes / segments_.elementBytes());
  const FpModeGuard guard;
  while (at_ < segments_.total()) {
    if (budget.spent()) return Advance::kSomething;
    const std::int64_t end = std::min(segments_.total(), at_ + block);
    segments_.forEach(
        at_, end, [&](std::size_t piece, std::int64_t offset, std::int64_t count, std::int64_t) {
          apply(segments_.in(piece, offset), segments_.out(piece, offset), count);
        });
    budget.charge(kBlockBytes);
    at_ = end;
  }
  return Advance::kDone;
}

void ScaledCopy::apply(const void* in, void* out, std::int64_t count) const {
  // Booleans become 0 or 1, in place, too.
  const bool changes = !reduction_.scale.identity() || reduction_.dtype == DType::kBool;
  if (in == out && !changes) return;
  reduce(std::span(&out, 1), std::span(&in, 1), count, reduction_.dtype, reduction_.op,
         reduction_.scale, Store::kCached);
}

}  // namespace farandole::collective
