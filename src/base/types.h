// Element types and reduction operators, as everything below the API sees them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace farandole {

// Numeric values equal farandole_dtype (checked in api/c_api.cc).
enum class DType : std::int32_t {
  kUint8 = 0,
  kInt8 = 1,
  kUint16 = 2,
  kInt16 = 3,
  kInt32 = 4,
  kInt64 = 5,
  kFloat16 = 6,
  kBfloat16 = 7,
  kFloat32 = 8,
  kFloat64 = 9,
  kBool = 10,
  kComplex64 = 11,
  kComplex128 = 12,
};
inline constexpr int kDTypeCount = 13;

// Numeric values equal farandole_reduce_op.
enum class ReduceOp : std::int32_t {
  kSum = 0,
  kAverage = 1,
  kMin = 2,
  kMax = 3,
  kProduct = 4,
  kBand = 5,
  kBor = 6,
  kBxor = 7,
  kAdasum = 8,
};
inline constexpr int kReduceOpCount = 9;

constexpr std::size_t sizeOf(DType dtype) {
  constexpr std::uint8_t kSizes[kDTypeCount] = {1, 1, 2, 2, 4, 8, 2, 2, 4, 8, 1, 8, 16};
  return kSizes[static_cast<int>(dtype)];
}

constexpr bool isFloating(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kBfloat16 || dtype == DType::kFloat32 ||
         dtype == DType::kFloat64;
}
constexpr bool isComplex(DType dtype) {
  return dtype == DType::kComplex64 || dtype == DType::kComplex128;
}

// False for combinations that have no meaning (bitwise on floats, minimum of complex numbers,
// Adasum of integers).
constexpr bool supports(ReduceOp op, DType dtype) {
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kAverage: return true;
    case ReduceOp::kMin:
    case ReduceOp::kMax:
    case ReduceOp::kProduct: return !isComplex(dtype);
    case ReduceOp::kBand:
    case ReduceOp::kBor:
    case ReduceOp::kBxor: return !isFloating(dtype) && !isComplex(dtype);
    case ReduceOp::kAdasum: return isFloating(dtype);
  }
  return false;
}

std::string_view name(DType dtype);  // "float32"
std::string_view name(ReduceOp op);  // "sum"
std::optional<DType> dtypeFromName(std::string_view text);
std::optional<ReduceOp> reduceOpFromName(std::string_view text);

// Checked conversion of numbers that came from outside.
constexpr std::optional<DType> dtypeFromInt(std::int64_t value) {
  if (value < 0 || value >= kDTypeCount) return std::nullopt;
  return static_cast<DType>(value);
}
constexpr std::optional<ReduceOp> reduceOpFromInt(std::int64_t value) {
  if (value < 0 || value >= kReduceOpCount) return std::nullopt;
  return static_cast<ReduceOp>(value);
}

}  // namespace farandole
