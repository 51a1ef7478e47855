// Meta: what a named operation is, without its data: everything that ranks must agree on before it
// can run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"
#include "control/codec.h"

namespace farandole {

// Numeric values equal farandole_operation; the last three never reach the sequencer as metas.
enum class Kind : std::int32_t {
  kAllreduce = 0,
  kAllgather = 1,
  kBroadcast = 2,
  kAlltoall = 3,
  kReducescatter = 4,
  kReduce = 5,
  kGather = 6,
  kScatter = 7,
  kBarrier = 8,
  kJoin = 9,
  kSend = 10,
  kReceive = 11,
};
inline constexpr int kKindCount = 12;
std::string_view name(Kind kind);

inline constexpr std::size_t kMaxDimensions = 64;
inline constexpr std::size_t kMaxNameBytes = 4096;
inline constexpr std::size_t kMaxSplits = 1024;

struct Meta {
  Kind kind = Kind::kAllreduce;
  DType dtype = DType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  std::int32_t root = 0;  // member index
  double prescale = 1.0;
  double postscale = 1.0;
  std::uint64_t group = 0;  // names the group; 0: none
  std::int32_t groupSize = 0;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t>
      splits;  // reducescatter only: the others' splits are data, not agreement

  // As if new, but with the memory it has.
  void renew();

  std::int64_t elements() const;
  std::int64_t bytes() const { return elements() * static_cast<std::int64_t>(sizeOf(dtype)); }
  // Elements of one row: the product of all dimensions but the first.
  std::int64_t rowElements() const;

  void encode(Writer& writer) const;
  // nullopt unless every field is in range and the shape's size fits 63 bits in bytes.
  static std::optional<Meta> decode(Reader& reader);
};

// The dimension from which shapes must agree: 1 where first dimensions may differ between ranks.
std::size_t firstAgreedDimension(Kind kind);
// True if both describe an operation that can run together.
bool agree(const Meta& a, const Meta& b);
// What differs, both sides shown: "dtype: rank 0 has float32, rank 1 has float64". Empty if they
// agree.
std::string difference(const Meta& a, std::string_view nameA, const Meta& b,
                       std::string_view nameB);
// True if both may be parts of one engine operation.
bool fusible(const Meta& a, const Meta& b);

// The number of elements of shape; nullopt for a negative dimension or more than 63 bits of bytes.
std::optional<std::int64_t> checkedElements(const std::vector<std::int64_t>& shape, DType dtype);

}  // namespace farandole
