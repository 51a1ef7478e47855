#include "collective/mpi/arithmetic.h"

#include <span>

namespace farandole::mpi {
namespace {

// Sums and products of integers wrap, which C++ promises for unsigned types only; the bits are the
// same.
MPI_Datatype unsignedType(DType dtype) {
  switch (sizeOf(dtype)) {
    case 1: return MPI_UINT8_T;
    case 2: return MPI_UINT16_T;
    case 4: return MPI_UINT32_T;
    default: return MPI_UINT64_T;
  }
}

MPI_Datatype integerType(DType dtype) {
  switch (dtype) {
    case DType::kInt8: return MPI_INT8_T;
    case DType::kInt16: return MPI_INT16_T;
    case DType::kInt32: return MPI_INT32_T;
    case DType::kInt64: return MPI_INT64_T;
    default: return unsignedType(dtype);
  }
}

std::optional<NativeReduction> nativeInteger(DType dtype, ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum: return NativeReduction{unsignedType(dtype), MPI_SUM, 1};
    case ReduceOp::kProduct: return NativeReduction{unsignedType(dtype), MPI_PROD, 1};
    case ReduceOp::kMin: return NativeReduction{integerType(dtype), MPI_MIN, 1};
    case ReduceOp::kMax: return NativeReduction{integerType(dtype), MPI_MAX, 1};
    case ReduceOp::kBand: return NativeReduction{unsignedType(dtype), MPI_BAND, 1};
    case ReduceOp::kBor: return NativeReduction{unsignedType(dtype), MPI_BOR, 1};
    case ReduceOp::kBxor: return NativeReduction{unsignedType(dtype), MPI_BXOR, 1};
    case ReduceOp::kAverage:
    case ReduceOp::kAdasum: break;
  }
  return std::nullopt;
}

}  // namespace

std::optional<NativeReduction> nativeReduction(const Reduction& reduction) {
  const bool sum = reduction.op == ReduceOp::kSum;
  const bool product = reduction.op == ReduceOp::kProduct;
  switch (reduction.dtype) {
    case DType::kFloat32:
    case DType::kFloat64:
      if (!sum && !product) return std::nullopt;
      return NativeReduction{reduction.dtype == DType::kFloat32 ? MPI_FLOAT : MPI_DOUBLE,
                             sum ? MPI_SUM : MPI_PROD, 1};
    // Sums of complex numbers are those of their parts.
    case DType::kComplex64:
    case DType::kComplex128:
      if (!sum) return std::nullopt;
      return NativeReduction{reduction.dtype == DType::kComplex64 ? MPI_FLOAT : MPI_DOUBLE, MPI_SUM,
                             2};
    case DType::kFloat16:
    case DType::kBfloat16:
    case DType::kBool: return std::nullopt;
    default:
      if (!reduction.scale.identity()) return std::nullopt;
      return nativeInteger(reduction.dtype, reduction.op);
  }
}

void scaledCopy(void* to, const void* from, std::int64_t count, const Reduction& reduction,
                const Scale& scale) {
  if (count == 0) return;
  if (scale.identity()) {
    if (to == from) return;
    copy(to, from, static_cast<std::size_t>(count) * sizeOf(reduction.dtype), Store::kCached);
    return;
  }
  reduce(std::span(&to, 1), std::span(&from, 1), count, reduction.dtype, reduction.op, scale,
         Store::kCached);
}

}  // namespace farandole::mpi
