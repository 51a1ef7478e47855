#include "collective/shm/local.h"

#include <algorithm>

#include "collective/segments.h"

namespace farandole {
namespace {

constexpr std::size_t kCopyBlock = std::size_t{1} << 20;

class LocalReduction final : public ShmOperation {
 public:
  LocalReduction(ShmContext& shared, std::span<const Piece> pieces, const Reduction& reduction)
      : ShmOperation(shared), segments_(pieces, sizeOf(reduction.dtype)), reduction_(reduction) {}

 protected:
  Advance advance(Budget& budget) override {
    const auto block = static_cast<std::int64_t>(kCopyBlock / segments_.elementBytes());
    const FpModeGuard guard;
    while (at_ < segments_.total()) {
      if (budget.spent()) return Advance::kSomething;
      const std::int64_t end = std::min(segments_.total(), at_ + block);
      segments_.forEach(
          at_, end, [&](std::size_t piece, std::int64_t offset, std::int64_t count, std::int64_t) {
            apply(piece, offset, count);
          });
      budget.charge(kCopyBlock);
      at_ = end;
    }
    return Advance::kDone;
  }

 private:
  void apply(std::size_t piece, std::int64_t offset, std::int64_t count) {
    const void* const in = segments_.in(piece, offset);
    void* const out = segments_.out(piece, offset);
    if (in == out && reduction_.scale.identity()) return;
    reduce(std::span(&out, 1), std::span(&in, 1), count, reduction_.dtype, reduction_.op,
           reduction_.scale, Store::kCached);
  }

  Segments segments_;
  Reduction reduction_;
  std::int64_t at_ = 0;
};

}  // namespace

OperationPtr makeLocalReduction(ShmContext& context, std::span<const Piece> pieces,
                                const Reduction& reduction) {
  return std::make_unique<LocalReduction>(context, pieces, reduction);
}

OperationPtr makeLocalCopy(ShmContext& context, const void* in, void* out, std::size_t bytes) {
  const Piece piece{in, out, static_cast<std::int64_t>(bytes)};
  return makeLocalReduction(context, std::span(&piece, 1),
                            Reduction{DType::kUint8, ReduceOp::kSum, {}});
}

}  // namespace farandole
