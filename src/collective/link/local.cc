#include "collective/link/local.h"

#include <algorithm>

#include "collective/segments.h"

namespace farandole::net {
namespace {

constexpr std::size_t kBlock = std::size_t{1} << 20;

class LocalReduction final : public NetOperation {
 public:
  LocalReduction(Context& shared, std::span<const Piece> pieces, const Reduction& reduction)
      : NetOperation(shared, 0), segments_(pieces, sizeOf(reduction.dtype)), reduction_(reduction) {
    mayBeDropped(true);
  }

 protected:
  Advance advance(Budget& budget) override {
    const auto block = static_cast<std::int64_t>(kBlock / segments_.elementBytes());
    const FpModeGuard guard;
    while (at_ < segments_.total()) {
      if (budget.spent()) return Advance::kSomething;
      const std::int64_t end = std::min(segments_.total(), at_ + block);
      segments_.forEach(
          at_, end, [&](std::size_t piece, std::int64_t offset, std::int64_t count, std::int64_t) {
            apply(segments_.in(piece, offset), segments_.out(piece, offset), count);
          });
      budget.charge(kBlock);
      at_ = end;
    }
    return Advance::kDone;
  }

 private:
  void apply(const void* in, void* out, std::int64_t count) const {
    if (in == out && reduction_.scale.identity()) return;
    reduce(std::span(&out, 1), std::span(&in, 1), count, reduction_.dtype, reduction_.op,
           reduction_.scale, Store::kCached);
  }

  const Segments segments_;
  const Reduction reduction_;
  std::int64_t at_ = 0;
};

}  // namespace

OperationPtr makeLocalReduction(Context& context, std::span<const Piece> pieces,
                                const Reduction& reduction) {
  return std::make_unique<LocalReduction>(context, pieces, reduction);
}

OperationPtr makeLocalCopy(Context& context, const void* in, void* out, std::size_t bytes) {
  const Piece piece{in, out, static_cast<std::int64_t>(bytes)};
  return makeLocalReduction(context, std::span(&piece, 1),
                            Reduction{DType::kUint8, ReduceOp::kSum, {}});
}

}  // namespace farandole::net
