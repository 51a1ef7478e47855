#include "control/meta.h"

#include <algorithm>
#include <array>
#include <limits>

namespace farandole {
namespace {

constexpr std::array<std::string_view, kKindCount> kKindNames = {
    "allreduce", "allgather", "broadcast", "alltoall", "reducescatter", "reduce",
    "gather",    "scatter",   "barrier",   "join",     "send",          "recv"};

bool reduces(Kind kind) {
  return kind == Kind::kAllreduce || kind == Kind::kReducescatter || kind == Kind::kReduce;
}
bool rooted(Kind kind) {
  return kind == Kind::kBroadcast || kind == Kind::kReduce || kind == Kind::kGather ||
         kind == Kind::kScatter;
}

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
  std::int64_t limit =
      std::numeric_limits<std::int64_t>::max() / static_cast<std::int64_t>(sizeOf(dtype));
  std::int64_t elements = 1;
  bool empty = false;
  for (const auto dimension : shape) {
    if (dimension < 0) return std::nullopt;
    if (dimension == 0) {
      empty = true;
      continue;
    }
    if (elements > limit / dimension) return std::nullopt;
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

void Meta::encode(Writer& writer) const {
  writer.number(static_cast<std::int32_t>(kind));
  writer.number(static_cast<std::int32_t>(dtype));
  writer.number(static_cast<std::int32_t>(op));
  writer.number(root);
  writer.number(prescale);
  writer.number(postscale);
  writer.number(group);
  writer.number(groupSize);
  writer.numbers(shape);
  writer.numbers(splits);
}

std::optional<Meta> Meta::decode(Reader& reader) {
  Meta meta;
  const auto kind = reader.number<std::int32_t>();
  const auto dtype = dtypeFromInt(reader.number<std::int32_t>());
  const auto op = reduceOpFromInt(reader.number<std::int32_t>());
  meta.root = reader.number<std::int32_t>();
  meta.prescale = reader.number<double>();
  meta.postscale = reader.number<double>();
  meta.group = reader.number<std::uint64_t>();
  meta.groupSize = reader.number<std::int32_t>();
  meta.shape = reader.numbers(kMaxDimensions);
  meta.splits = reader.numbers(kMaxSplits);
  if (!reader.ok() || kind < 0 || kind >= kKindCount || !dtype || !op || meta.root < 0 ||
      meta.groupSize < 0 || !checkedElements(meta.shape, *dtype)) {
    return std::nullopt;
  }
  meta.kind = static_cast<Kind>(kind);
  meta.dtype = *dtype;
  meta.op = *op;
  return meta;
}

std::size_t firstAgreedDimension(Kind kind) {
  return kind == Kind::kAllgather || kind == Kind::kGather || kind == Kind::kAlltoall ? 1 : 0;
}

bool agree(const Meta& a, const Meta& b) {
  if (a.kind != b.kind || a.group != b.group || a.groupSize != b.groupSize) return false;
  if (a.kind == Kind::kBarrier) return true;
  if (a.dtype != b.dtype || !shapesAgree(a, b)) return false;
  if (rooted(a.kind) && a.root != b.root) return false;
  if (reduces(a.kind) && (a.op != b.op || a.prescale != b.prescale || a.postscale != b.postscale)) {
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
  if (a.dtype != b.dtype) return both("dtype", name(a.dtype), name(b.dtype));
  if (!shapesAgree(a, b)) return both("shape", show(a.shape), show(b.shape));
  if (rooted(a.kind) && a.root != b.root) {
    return both("root", "member " + std::to_string(a.root), "member " + std::to_string(b.root));
  }
  if (reduces(a.kind)) {
    if (a.op != b.op) return both("op", name(a.op), name(b.op));
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

bool fusible(const Meta& a, const Meta& b) {
  if (a.kind != b.kind || a.dtype != b.dtype) return false;
  if (a.kind == Kind::kBroadcast) return a.root == b.root;
  // Adasum weighs each tensor by its own norms.
  return a.kind == Kind::kAllreduce && a.op != ReduceOp::kAdasum && a.op == b.op &&
         a.prescale == b.prescale && a.postscale == b.postscale;
}

}  // namespace farandole
