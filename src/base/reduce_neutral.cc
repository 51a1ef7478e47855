// fillNeutral: what a rank that has joined contributes.
#include <algorithm>
#include <cassert>
#include <cstring>
#include <limits>

#include "base/reduce.h"

namespace farandole {
namespace {

template <typename T>
T neutralInteger(ReduceOp op) {
  switch (op) {
    case ReduceOp::kMin: return std::numeric_limits<T>::max();
    case ReduceOp::kMax: return std::numeric_limits<T>::lowest();
    case ReduceOp::kProduct: return T{1};
    case ReduceOp::kBand: return static_cast<T>(~T{0});
    default: return T{0};
  }
}

template <typename T>
T neutralFloat(ReduceOp op) {
  switch (op) {
    case ReduceOp::kMin: return std::numeric_limits<T>::infinity();
    case ReduceOp::kMax: return -std::numeric_limits<T>::infinity();
    case ReduceOp::kProduct: return T{1};
    default: return T{0};
  }
}

// infinity and one: bit patterns.
std::uint16_t neutralShortFloat(ReduceOp op, std::uint16_t infinity, std::uint16_t one) {
  switch (op) {
    case ReduceOp::kMin: return infinity;
    case ReduceOp::kMax: return static_cast<std::uint16_t>(infinity | 0x8000u);
    case ReduceOp::kProduct: return one;
    default: return 0;
  }
}

std::uint8_t neutralBool(ReduceOp op) {
  return op == ReduceOp::kMin || op == ReduceOp::kProduct || op == ReduceOp::kBand ? 1 : 0;
}

// The destination may be misaligned.
template <typename T>
void fill(void* destination, std::int64_t count, T value) {
  auto* to = static_cast<std::byte*>(destination);
  for (std::int64_t i = 0; i < count; ++i, to += sizeof value) {
    std::memcpy(to, &value, sizeof value);
  }
}

}  // namespace

void fillNeutral(void* destination, std::int64_t count, DType dtype, ReduceOp op) {
  assert(supports(op, dtype));
  if (count <= 0) return;
  switch (dtype) {
    case DType::kUint8: return fill(destination, count, neutralInteger<std::uint8_t>(op));
    case DType::kInt8: return fill(destination, count, neutralInteger<std::int8_t>(op));
    case DType::kUint16: return fill(destination, count, neutralInteger<std::uint16_t>(op));
    case DType::kInt16: return fill(destination, count, neutralInteger<std::int16_t>(op));
    case DType::kInt32: return fill(destination, count, neutralInteger<std::int32_t>(op));
    case DType::kInt64: return fill(destination, count, neutralInteger<std::int64_t>(op));
    case DType::kFloat16: return fill(destination, count, neutralShortFloat(op, 0x7c00, 0x3c00));
    case DType::kBfloat16: return fill(destination, count, neutralShortFloat(op, 0x7f80, 0x3f80));
    case DType::kFloat32: return fill(destination, count, neutralFloat<float>(op));
    case DType::kFloat64: return fill(destination, count, neutralFloat<double>(op));
    case DType::kBool: return fill(destination, count, neutralBool(op));
    case DType::kComplex64:
    case DType::kComplex128:
      std::memset(destination, 0, static_cast<std::size_t>(count) * sizeOf(dtype));
      return;
  }
}

}  // namespace farandole
