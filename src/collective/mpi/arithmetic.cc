#include "collective/mpi/arithmetic.h"

#include <span>

namespace farandole::collective::mpi {
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

NativeReduction nativeInteger(DType dtype, ReduceOp op) {
  switch (op) {
    case ReduceOp::kProduct: return {unsignedType(dtype), MPI_PROD, 1};
    case ReduceOp::kMin: return {integerType(dtype), MPI_MIN, 1};
    case ReduceOp::kMax: return {integerType(dtype), MPI_MAX, 1};
    case ReduceOp::kBand: return {unsignedType(dtype), MPI_BAND, 1};
    case ReduceOp::kBor: return {unsignedType(dtype), MPI_BOR, 1};
    case ReduceOp::kBxor: return {unsignedType(dtype), MPI_BXOR, 1};
    default: return {unsignedType(dtype), MPI_SUM, 1};
  }
}

}  // namespace

NativeReduction nativeReduction(const Reduction& reduction) {
  const MPI_Op op = reduction.op == ReduceOp::kSum ? MPI_SUM : MPI_PROD;
  switch (reduction.dtype) {
    case DType::kFloat32: return {MPI_FLOAT, op, 1};
    case DType::kFloat64: return {MPI_DOUBLE, op, 1};
    // Sums of complex numbers are those of their parts.
    case DType::kComplex64: return {MPI_FLOAT, op, 2};
    case DType::kComplex128: return {MPI_DOUBLE, op, 2};
    default: return nativeInteger(reduction.dtype, reduction.op);
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

}  // namespace farandole::collective::mpi
