#include "unit/collective/data.h"

namespace farandole::testing {
namespace {

template <typename T>
void put(Bytes& to, std::int64_t index, T value) {
  std::memcpy(to.data() + static_cast<std::size_t>(index) * sizeof(T), &value, sizeof(T));
}

// Numbers k/8 with |k| < 32 are exact in every floating type; built from their bits here, so that
// no conversion routine of the library is needed.
std::uint16_t halfBits(int eighths) {
  if (eighths == 0) return 0;
  const int magnitude = eighths < 0 ? -eighths : eighths;
  int exponent = 0;
  while ((magnitude >> (exponent + 1)) != 0) ++exponent;
  const int mantissa = (magnitude << (10 - exponent)) & 0x3ff;
  return static_cast<std::uint16_t>((eighths < 0 ? 0x8000 : 0) | ((exponent - 3 + 15) << 10) |
                                    mantissa);
}

std::uint16_t bfloatBits(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return static_cast<std::uint16_t>(bits >> 16);
}

}  // namespace

Bytes makeData(DType dtype, std::int64_t count, std::uint64_t seed, int rank) {
  Bytes data(static_cast<std::size_t>(count) * sizeOf(dtype));
  std::mt19937_64 engine(seed * 1'000'003 + static_cast<std::uint64_t>(rank));
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint64_t random = engine();
    const int eighths = static_cast<int>(random % 63) - 31;
    const double real = static_cast<double>(static_cast<std::int64_t>(random)) / 4.0e18;
    switch (dtype) {
      case DType::kUint8:
      case DType::kInt8: put(data, i, static_cast<std::uint8_t>(random)); break;
      case DType::kUint16:
      case DType::kInt16: put(data, i, static_cast<std::uint16_t>(random)); break;
      case DType::kInt32: put(data, i, static_cast<std::uint32_t>(random)); break;
      case DType::kInt64: put(data, i, random); break;
      case DType::kFloat16: put(data, i, halfBits(eighths)); break;
      case DType::kBfloat16: put(data, i, bfloatBits(static_cast<float>(eighths) / 8)); break;
      case DType::kFloat32: put(data, i, static_cast<float>(real)); break;
      case DType::kFloat64: put(data, i, real); break;
      case DType::kBool: put(data, i, static_cast<std::uint8_t>(random % 2)); break;
      case DType::kComplex64:
        put(data, 2 * i, static_cast<float>(real));
        put(data, 2 * i + 1, static_cast<float>(eighths));
        break;
      case DType::kComplex128:
        put(data, 2 * i, real);
        put(data, 2 * i + 1, static_cast<double>(eighths));
        break;
    }
  }
  return data;
}

Bytes reduced(const std::vector<Bytes>& inputs, std::int64_t count, DType dtype, ReduceOp op,
              Scale scale) {
  if (op == ReduceOp::kAverage) {
    op = ReduceOp::kSum;
    scale.divisor *= static_cast<std::int64_t>(inputs.size());
  }
  Bytes result(static_cast<std::size_t>(count) * sizeOf(dtype));
  std::vector<const void*> sources;
  for (const Bytes& input : inputs) sources.push_back(input.data());
  void* const destination = result.data();
  const FpModeGuard guard;
  reduce(std::span(&destination, 1), sources, count, dtype, op, scale, Store::kCached);
  return result;
}

std::int64_t firstDifference(const void* a, const void* b, std::size_t bytes) {
  if (bytes == 0 || std::memcmp(a, b, bytes) == 0) return -1;
  const auto* left = static_cast<const std::byte*>(a);
  const auto* right = static_cast<const std::byte*>(b);
  for (std::size_t i = 0; i < bytes; ++i) {
    if (left[i] != right[i]) return static_cast<std::int64_t>(i);
  }
  return -1;
}

}  // namespace farandole::testing
