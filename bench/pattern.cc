#include "bench/pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace farandole::bench {
namespace {

constexpr std::int64_t kBlock = 3 * 1024;

std::int64_t valueOf(int rank, std::int64_t i) { return 1 + (i + rank) % 3; }

// Exact for 1 … 2047.
std::uint16_t toHalf(std::int64_t value) {
  const int exponent = std::bit_width(static_cast<std::uint64_t>(value)) - 1;
  const std::int64_t fraction = ((value << 10) >> exponent) & 0x3ff;
  return static_cast<std::uint16_t>(((exponent + 15) << 10) | fraction);
}

std::uint16_t toBfloat(std::int64_t value) {
  return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(value)) >> 16);
}

template <typename T>
void put(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

void encode(std::byte* to, DType dtype, std::int64_t value) {
  switch (dtype) {
    case DType::kUint8: return put(to, static_cast<std::uint8_t>(value));
    case DType::kInt8: return put(to, static_cast<std::int8_t>(value));
    case DType::kUint16: return put(to, static_cast<std::uint16_t>(value));
    case DType::kInt16: return put(to, static_cast<std::int16_t>(value));
    case DType::kInt32: return put(to, static_cast<std::int32_t>(value));
    case DType::kInt64: return put(to, value);
    case DType::kFloat16: return put(to, toHalf(value));
    case DType::kBfloat16: return put(to, toBfloat(value));
    case DType::kFloat32: return put(to, static_cast<float>(value));
    case DType::kFloat64: return put(to, static_cast<double>(value));
    case DType::kBool:
    case DType::kComplex64:
    case DType::kComplex128: return;  // not known, see knows()
  }
}

}  // namespace

bool Pattern::knows(DType dtype, ReduceOp op) {
  return dtype != DType::kBool && !isComplex(dtype) &&
         (op == ReduceOp::kSum || op == ReduceOp::kMin || op == ReduceOp::kMax);
}

Pattern::Pattern(DType dtype, const std::int64_t values[3])
    : width_(sizeOf(dtype)), block_((kBlock + 3) * width_) {
  for (std::int64_t i = 0; i < kBlock + 3; ++i) {
    encode(block_.data() + static_cast<std::size_t>(i) * width_, dtype, values[i % 3]);
  }
}

Pattern Pattern::ofRank(DType dtype, int rank) {
  const std::int64_t values[3] = {valueOf(rank, 0), valueOf(rank, 1), valueOf(rank, 2)};
  return {dtype, values};
}

Pattern Pattern::reduced(DType dtype, ReduceOp op, int ranks) {
  std::int64_t values[3];
  for (std::int64_t i = 0; i < 3; ++i) {
    values[i] = valueOf(0, i);
    for (int rank = 1; rank < ranks; ++rank) {
      const std::int64_t next = valueOf(rank, i);
      if (op == ReduceOp::kSum) values[i] += next;
      if (op == ReduceOp::kMin) values[i] = std::min(values[i], next);
      if (op == ReduceOp::kMax) values[i] = std::max(values[i], next);
    }
  }
  return {dtype, values};
}

void Pattern::fill(void* data, std::int64_t count, std::int64_t first) const {
  auto* to = static_cast<std::byte*>(data);
  const std::byte* from = block_.data() + static_cast<std::size_t>(first % 3) * width_;
  for (std::int64_t done = 0; done < count; done += kBlock) {
    const auto part = static_cast<std::size_t>(std::min(kBlock, count - done));
    std::memcpy(to + static_cast<std::size_t>(done) * width_, from, part * width_);
  }
}

Status Pattern::verify(const void* data, std::int64_t count, std::int64_t first) const {
  const auto* at = static_cast<const std::byte*>(data);
  const std::byte* expected = block_.data() + static_cast<std::size_t>(first % 3) * width_;
  for (std::int64_t done = 0; done < count; done += kBlock) {
    const std::int64_t part = std::min(kBlock, count - done);
    const std::byte* block = at + static_cast<std::size_t>(done) * width_;
    if (std::memcmp(block, expected, static_cast<std::size_t>(part) * width_) == 0) continue;
    for (std::int64_t i = 0; i < part; ++i) {
      const std::size_t offset = static_cast<std::size_t>(i) * width_;
      if (std::memcmp(block + offset, expected + offset, width_) != 0) {
        return Status::internal(fmt::format("wrong result at element {} of {}", done + i, count));
      }
    }
  }
  return {};
}

}  // namespace farandole::bench
