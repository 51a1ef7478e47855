// Element types, buffers and reduction operators of the C++ API.
//
// The whole API is in an inline namespace, so that two versions of it in one program are different
// symbols.
#pragma once

#include <farandole.h>

#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <type_traits>

namespace farandole {
inline namespace v1 {

enum class DType : std::int32_t {
  kUint8 = FARANDOLE_UINT8,
  kInt8 = FARANDOLE_INT8,
  kUint16 = FARANDOLE_UINT16,
  kInt16 = FARANDOLE_INT16,
  kInt32 = FARANDOLE_INT32,
  kInt64 = FARANDOLE_INT64,
  kFloat16 = FARANDOLE_FLOAT16,
  kBfloat16 = FARANDOLE_BFLOAT16,
  kFloat32 = FARANDOLE_FLOAT32,
  kFloat64 = FARANDOLE_FLOAT64,
  kBool = FARANDOLE_BOOL,
  kComplex64 = FARANDOLE_COMPLEX64,
  kComplex128 = FARANDOLE_COMPLEX128,
};

// Which elements an operator takes, and what it does with them: farandole_reduce_op.
enum class ReduceOp : std::int32_t {
  kSum = FARANDOLE_SUM,
  kAverage = FARANDOLE_AVERAGE,
  kMin = FARANDOLE_MIN,
  kMax = FARANDOLE_MAX,
  kProduct = FARANDOLE_PRODUCT,
  kBand = FARANDOLE_BAND,
  kBor = FARANDOLE_BOR,
  kBxor = FARANDOLE_BXOR,
  kAdasum = FARANDOLE_ADASUM,
};

// The peer of a recv() that takes a message from any rank.
inline constexpr int kAnyRank = FARANDOLE_ANY_RANK;

// 16-bit floats as bit patterns; C++20 has no type for them.
struct Float16 {
  std::uint16_t bits;
};
struct Bfloat16 {
  std::uint16_t bits;
};

namespace detail {

// A farandole_dtype, or -1. Decided by kind and size, so that long and long long are both int64.
template <typename T>
constexpr int dtypeNumber() {
  if constexpr (std::is_same_v<T, bool>) return FARANDOLE_BOOL;
  if constexpr (std::is_same_v<T, std::byte>) return FARANDOLE_UINT8;
  if constexpr (std::is_same_v<T, Float16>) return FARANDOLE_FLOAT16;
  if constexpr (std::is_same_v<T, Bfloat16>) return FARANDOLE_BFLOAT16;
  if constexpr (std::is_same_v<T, float>) return FARANDOLE_FLOAT32;
  if constexpr (std::is_same_v<T, double>) return FARANDOLE_FLOAT64;
  if constexpr (std::is_same_v<T, std::complex<float>>) return FARANDOLE_COMPLEX64;
  if constexpr (std::is_same_v<T, std::complex<double>>) return FARANDOLE_COMPLEX128;
  if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
    return sizeof(T) == 1   ? FARANDOLE_INT8
           : sizeof(T) == 2 ? FARANDOLE_INT16
           : sizeof(T) == 4 ? FARANDOLE_INT32
                            : FARANDOLE_INT64;
  }
  if constexpr (std::is_integral_v<T> && std::is_unsigned_v<T>) {
    return sizeof(T) == 1 ? FARANDOLE_UINT8 : sizeof(T) == 2 ? FARANDOLE_UINT16 : -1;
  }
  return -1;
}

}  // namespace detail

// A type that Farandole can move and reduce.
template <typename T>
concept Element = (detail::dtypeNumber<T>() >= 0);

template <Element T>
constexpr DType dtypeOf() {
  return static_cast<DType>(detail::dtypeNumber<T>());
}

// Elements in contiguous memory: std::vector, std::array, SharedBuffer, std::span(pointer, count).
template <typename R>
concept Buffer = std::ranges::contiguous_range<R> && std::ranges::sized_range<R> &&
    Element<std::ranges::range_value_t<R>>;

// A buffer that can be written to.
template <typename R>
concept MutableBuffer =
    Buffer<R> && !std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<R>>>;

template <Buffer R>
using ElementOf = std::ranges::range_value_t<R>;

// Numbers of elements, one for each member of a set.
template <typename R>
concept Splits = Buffer<R> && std::is_same_v<std::ranges::range_value_t<R>, std::int64_t>;

}  // namespace v1
}  // namespace farandole
