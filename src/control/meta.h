// Meta: what a named operation is, without its data: everything that ranks must agree on before it
// can run.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/types.h"

namespace farandole::control {

// Numeric values equal farandole_operation; the last three never reach the sequencer as metas, and
// are not decoded.
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
  // The first dimension; a scalar is one row.
  std::int64_t rows() const { return shape.empty() ? 1 : shape[0]; }
  // Elements of one row: the product of all dimensions but the first.
  std::int64_t rowElements() const;

  void encode(ByteWriter& writer) const;
  // nullopt unless a member of a set of that size could have submitted it by name (objection()).
  static std::optional<Meta> decode(ByteReader& reader, int members);
};

// Why there can be no such operation in a set of that many members; nullopt: there can. What a
// caller passes and what another rank sends is held to this alike, so that nothing runs that could
// not have been submitted here. The kind, dtype and op are of their enums.
std::optional<std::string> objection(const Meta& meta, int members);
// The same of rows of the first dimension for each member.
std::optional<std::string> splitsObjection(std::span<const std::int64_t> splits, std::int64_t rows,
                                           int members);
// Whether it can run while those members bring no data because they have joined.
bool runsWithoutSome(const Meta& meta, std::span<const std::int64_t> joined);
inline bool runsWithout(const Meta& meta, std::span<const std::int64_t> joined) {
  return joined.empty() || runsWithoutSome(meta, joined);
}

inline bool isReduction(Kind kind) {
  return kind == Kind::kAllreduce || kind == Kind::kReducescatter || kind == Kind::kReduce;
}
// Whether one member is its root.
inline bool hasRoot(Kind kind) {
  return kind == Kind::kBroadcast || kind == Kind::kReduce || kind == Kind::kGather ||
         kind == Kind::kScatter;
}

// The dimension from which shapes must agree: 1 where first dimensions may differ between ranks.
std::size_t firstAgreedDimension(Kind kind);
// True if both describe an operation that can run together.
bool agree(const Meta& a, const Meta& b);
// What differs, both sides shown: "dtype: rank 0 has float32, rank 1 has float64". Empty if they
// agree.
std::string difference(const Meta& a, std::string_view nameA, const Meta& b,
                       std::string_view nameB);
// For the log: "allreduce of float32 [4, 2]".
std::string describe(const Meta& meta);
// True if both may be parts of one engine operation.
bool fusible(const Meta& a, const Meta& b);
// Whether the result's size depends on what other members bring: nobody knows before they have told
// each other whether it fits.
bool othersDecideSize(Kind kind);

// The number of elements of shape; nullopt for a negative dimension or more than 63 bits of bytes.
std::optional<std::int64_t> checkedElements(const std::vector<std::int64_t>& shape, DType dtype);

}  // namespace farandole::control
