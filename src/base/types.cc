#include "base/types.h"

#include <array>

namespace farandole {
namespace {

constexpr std::array<std::string_view, kDTypeCount> kDTypeNames = {
    "uint8",    "int8",    "uint16",  "int16", "int32",     "int64",     "float16",
    "bfloat16", "float32", "float64", "bool",  "complex64", "complex128"};

constexpr std::array<std::string_view, kReduceOpCount> kReduceOpNames = {
    "sum", "average", "min", "max", "product", "band", "bor", "bxor", "adasum"};

template <typename Enum, std::size_t N>
std::optional<Enum> find(const std::array<std::string_view, N>& names, std::string_view text) {
  for (std::size_t i = 0; i < N; ++i) {
    if (names[i] == text) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

}  // namespace

std::string_view name(DType dtype) { return kDTypeNames[static_cast<std::size_t>(dtype)]; }
std::string_view name(ReduceOp op) { return kReduceOpNames[static_cast<std::size_t>(op)]; }
std::optional<DType> dtypeFromName(std::string_view text) { return find<DType>(kDTypeNames, text); }
std::optional<ReduceOp> reduceOpFromName(std::string_view text) {
  return find<ReduceOp>(kReduceOpNames, text);
}

}  // namespace farandole
