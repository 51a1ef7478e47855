#include "control/meta.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "collective/communicator.h"

namespace farandole::control {
namespace {

constexpr std::array<std::string_view, kKindCount> kKindNames = {
    "allreduce", "allgather", "broadcast", "alltoall", "reducescatter", "reduce",
    "gather",    "scatter",   "barrier",   "join",     "send",          "recv"};

std::string show(const std::vector<std::int64_t>& values) {
  std::string text = "[";
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(values[i]);
  }
  return text + "]";
}

bool shapesAgree(const Meta& a, const Meta& b) {
  // Only the root of a scatter has the shape that counts.
  if (a.kind == Kind::kScatter || a.kind == Kind::kBarrier) return true;
  const std::size_t from = firstAgreedDimension(a.kind);
  if (a.shape.size() != b.shape.size()) return false;
  if (a.shape.size() < from) return true;
  return std::equal(a.shape.begin() + static_cast<std::ptrdiff_t>(from), a.shape.end(),
                    b.shape.begin() + static_cast<std::ptrdiff_t>(from));
}

}  // namespace

std::string_view name(Kind kind) { return kKindNames[static_cast<std::size_t>(kind)]; }

std::optional<std::int64_t> checkedElements(const std::vector<std::int64_t>& shape, DType dtype) {
  auto bytes = static_cast<std::int64_t>(sizeOf(dtype));
  std::int64_t elements = 1;
  bool empty = false;
  for (const auto dimension : shape) {
    if (dimension < 0) return std::nullopt;
    if (dimension == 0) {
      empty = true;
      continue;
    }
    if (__builtin_mul_overflow(bytes, dimension, &bytes)) return std::nullopt;
    elements *= dimension;
  }
  return empty ? 0 : elements;
}

std::int64_t Meta::elements() const {
  std::int64_t product = 1;
  for (const auto dimension : shape) product *= dimension;
  return product;
}

std::int64_t Meta::rowElements() const {
  std::int64_t product = 1;
  for (std::size_t i = 1; i < shape.size(); ++i) product *= shape[i];
  return product;
}

void Meta::renew() {
  kind = Kind::kAllreduce;
  dtype = DType::kFloat32;
  op = ReduceOp::kSum;
  root = 0;
  prescale = 1.0;
  postscale = 1.0;
  group = 0;
  groupSize = 0;
  shape.clear();
  splits.clear();
}

void Meta::encode(ByteWriter& writer) const {
  writer.integer(static_cast<std::int32_t>(kind));
  writer.integer(static_cast<std::int32_t>(dtype));
  writer.integer(static_cast<std::int32_t>(op));
  writer.integer(root);
  writer.real(prescale);
  writer.real(postscale);
  writer.integer(group);
  writer.integer(groupSize);
  writer.integers(shape);
  writer.integers(splits);
}

std::optional<Meta> Meta::decode(ByteReader& reader, int members) {
  Meta meta;
  const auto kind = reader.integer<std::int32_t>();
  const auto dtype = dtypeFromInt(reader.integer<std::int32_t>());
  const auto op = reduceOpFromInt(reader.integer<std::int32_t>());
  meta.root = reader.integer<std::int32_t>();
  meta.prescale = reader.real();
  meta.postscale = reader.real();
  meta.group = reader.integer<std::uint64_t>();
  meta.groupSize = reader.integer<std::int32_t>();
  meta.shape = reader.integers(kMaxDimensions);
  meta.splits = reader.integers(kMaxSplits);
  const bool named = kind >= 0 && kind <= static_cast<std::int32_t>(Kind::kBarrier);
  if (!reader.good() || !named || !dtype || !op) return std::nullopt;
  meta.kind = static_cast<Kind>(kind);
  meta.dtype = *dtype;
  meta.op = *op;
  if (objection(meta, members)) return std::nullopt;
  return meta;
}

std::optional<std::string> splitsObjection(std::span<const std::int64_t> splits, std::int64_t rows,
                                           int members) {
  if (splits.size() != static_cast<std::size_t>(members)) {
    return std::to_string(splits.size()) + " splits for " + std::to_string(members) + " ranks";
  }
  std::int64_t total = 0;
  for (const auto split : splits) {
    if (split < 0 || split > rows - total) {
      return "splits must be non-negative and add up to the first dimension, " +
             std::to_string(rows);
    }
    total += split;
  }
  if (total == rows) return std::nullopt;
  return "splits add up to " + std::to_string(total) + ", the first dimension is " +
         std::to_string(rows);
}

namespace {

std::optional<std::string> reductionObjection(const Meta& meta) {
  if (!supports(meta.op, meta.dtype)) {
    return std::string(farandole::name(meta.op)) + " is not defined for " +
           std::string(farandole::name(meta.dtype));
  }
  if (meta.op == ReduceOp::kAdasum && meta.kind != Kind::kAllreduce) {
    return "adasum is possible with allreduce only";
  }
  if (!std::isfinite(meta.prescale) || !std::isfinite(meta.postscale)) {
    return "prescale and postscale must be finite numbers";
  }
  if (meta.dtype == DType::kBool && (meta.prescale != 1 || meta.postscale != 1)) {
    return "bool cannot be scaled";
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> objection(const Meta& meta, int members) {
  if (meta.shape.size() > kMaxDimensions || !checkedElements(meta.shape, meta.dtype)) {
    return "the shape has a negative dimension or is too large for 64 bits";
  }
  // In range even where there is none.
  const bool anyone = meta.kind == Kind::kReceive && meta.root == collective::kAnyMember;
  if (!anyone && (meta.root < 0 || meta.root >= members)) {
    return "there is no member " + std::to_string(meta.root) + " among " + std::to_string(members);
  }
  if (isReduction(meta.kind)) {
    if (auto found = reductionObjection(meta)) return found;
  }
  if (!meta.splits.empty()) {
    if (meta.kind != Kind::kReducescatter) return "splits that are not part of the agreement";
    if (auto found = splitsObjection(meta.splits, meta.rows(), members)) return found;
  }
  if (meta.groupSize < 0 || (meta.group == 0) != (meta.groupSize == 0)) {
    return "a group of " + std::to_string(meta.groupSize) + " operations";
  }
  return std::nullopt;
}

bool runsWithoutSome(const Meta& meta, std::span<const std::int64_t> joined) {
  switch (meta.kind) {
    case Kind::kAllreduce:
    case Kind::kAllgather:
    case Kind::kBarrier: return true;
    case Kind::kBroadcast:
      return std::find(joined.begin(), joined.end(), meta.root) == joined.end();
    default: return false;
  }
}

std::size_t firstAgreedDimension(Kind kind) {
  return kind == Kind::kAllgather || kind == Kind::kGather || kind == Kind::kAlltoall ? 1 : 0;
}

bool agree(const Meta& a, const Meta& b) {
  if (a.kind != b.kind || a.group != b.group || a.groupSize != b.groupSize) return false;
  if (a.kind == Kind::kBarrier) return true;
  if (a.dtype != b.dtype || !shapesAgree(a, b)) return false;
  if (hasRoot(a.kind) && a.root != b.root) return false;
  if (isReduction(a.kind) &&
      (a.op != b.op || a.prescale != b.prescale || a.postscale != b.postscale)) {
    return false;
  }
  return a.kind != Kind::kReducescatter || a.splits == b.splits;
}

std::string difference(const Meta& a, std::string_view nameA, const Meta& b,
                       std::string_view nameB) {
  const auto both = [&](std::string_view what, std::string_view sideA, std::string_view sideB) {
    std::string text(what);
    text.append(": ").append(nameA).append(" has ").append(sideA);
    return text.append(", ").append(nameB).append(" has ").append(sideB);
  };
  const auto number = [](double value) {
    std::string text = std::to_string(value);
    return text;
  };
  if (a.kind != b.kind) return both("operation", name(a.kind), name(b.kind));
  if (a.kind == Kind::kBarrier) return {};
  if (a.dtype != b.dtype) return both("dtype", farandole::name(a.dtype), farandole::name(b.dtype));
  if (!shapesAgree(a, b)) return both("shape", show(a.shape), show(b.shape));
  if (hasRoot(a.kind) && a.root != b.root) {
    return both("root", "member " + std::to_string(a.root), "member " + std::to_string(b.root));
  }
  if (isReduction(a.kind)) {
    if (a.op != b.op) return both("op", farandole::name(a.op), farandole::name(b.op));
    if (a.prescale != b.prescale) return both("prescale", number(a.prescale), number(b.prescale));
    if (a.postscale != b.postscale)
      return both("postscale", number(a.postscale), number(b.postscale));
  }
  if (a.splits != b.splits && a.kind == Kind::kReducescatter) {
    return both("splits", show(a.splits), show(b.splits));
  }
  if (a.group != b.group || a.groupSize != b.groupSize) {
    return both("group", a.groupSize == 0 ? "none" : std::to_string(a.groupSize) + " tensors",
                b.groupSize == 0 ? "none" : std::to_string(b.groupSize) + " other tensors");
  }
  return {};
}

std::string describe(const Meta& meta) {
  std::string text(name(meta.kind));
  if (meta.kind == Kind::kBarrier) return text;
  return text.append(" of ").append(farandole::name(meta.dtype)).append(" ") + show(meta.shape);
}

bool othersDecideSize(Kind kind) {
  return kind == Kind::kAllgather || kind == Kind::kGather || kind == Kind::kAlltoall ||
         kind == Kind::kScatter;
}

bool fusible(const Meta& a, const Meta& b) {
  if (a.kind != b.kind || a.dtype != b.dtype) return false;
  if (a.kind == Kind::kBroadcast) return a.root == b.root;
  // Adasum weighs each tensor by its own norms.
  return a.kind == Kind::kAllreduce && a.op != ReduceOp::kAdasum && a.op == b.op &&
         a.prescale == b.prescale && a.postscale == b.postscale;
}

}  // namespace farandole::control
