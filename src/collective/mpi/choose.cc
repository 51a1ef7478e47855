#include "collective/mpi/choose.h"

#include <algorithm>

namespace farandole::collective::mpi {
namespace {

// All members' arrays together: up to this size each member takes them all.
constexpr std::size_t kGathered = std::size_t{64} << 10;

}  // namespace

bool mpiComputes(const Reduction& reduction) {
  const bool sum = reduction.op == ReduceOp::kSum;
  switch (reduction.dtype) {
    case DType::kFloat32:
    case DType::kFloat64: return sum || reduction.op == ReduceOp::kProduct;
    case DType::kComplex64:
    case DType::kComplex128: return sum;
    case DType::kFloat16:
    case DType::kBfloat16:
    case DType::kBool: return false;
    default:
      return reduction.scale.identity() && reduction.op != ReduceOp::kAverage &&
             reduction.op != ReduceOp::kAdasum;
  }
}

bool nativeSize(int members, int nativeFrom) {
  return members > 1 && nativeFrom > 0 && members >= nativeFrom;
}

Algorithm chooseAllreduce(const Reduction& reduction, std::size_t bytes, int members,
                          int nativeFrom) {
  if (members == 1) return Algorithm::kLocal;
  if (nativeSize(members, nativeFrom) && mpiComputes(reduction)) return Algorithm::kNative;
  return bytes <= kGathered / static_cast<std::size_t>(members) ? Algorithm::kGathered
                                                                : Algorithm::kExchange;
}

std::vector<Chunk> cut(std::span<const Piece> pieces, std::size_t elementBytes) {
  const auto elements = [&](std::size_t bytes) {
    return static_cast<std::int64_t>(bytes / elementBytes);
  };
  const bool single = pieces.size() == 1;
  std::vector<Chunk> chunks;
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    std::int64_t left = pieces[i].count;
    std::int64_t offset = 0;
    const bool direct = single || left >= elements(kDirectFrom);
    while (left > 0) {
      std::int64_t count = std::min(left, elements(kDirectBytes));
      if (direct) {
        chunks.push_back({begin, count, static_cast<int>(i), offset});
      } else {
        const bool joins = !chunks.empty() && chunks.back().piece < 0 &&
                           chunks.back().count < elements(kPackedBytes);
        if (!joins) chunks.push_back({begin, 0, -1, 0});
        count = std::min(left, elements(kPackedBytes) - chunks.back().count);
        chunks.back().count += count;
      }
      begin += count;
      offset += count;
      left -= count;
    }
  }
  return chunks;
}

}  // namespace farandole::collective::mpi
