#include "collective/mpi/choose.h"

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

}  // namespace farandole::collective::mpi
