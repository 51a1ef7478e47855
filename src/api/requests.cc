#include "api/requests.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>
#include <span>

namespace farandole::api {
namespace {

std::string quoted(const farandole_request& request) {
  return request.name != nullptr ? "'" + std::string(request.name) + "': " : std::string();
}

Status wrong(const farandole_request& request, std::string text) {
  return Status::invalid(quoted(request) + std::move(text))
      .withTensor(request.name != nullptr ? request.name : "");
}

// The root (a global rank) as a member of the set; nullopt if it is none.
std::optional<std::int32_t> memberOf(const runtime::Runtime::SetInfo& set, std::int32_t rank) {
  const auto found = std::find(set.ranks.begin(), set.ranks.end(), rank);
  if (found == set.ranks.end()) return std::nullopt;
  return static_cast<std::int32_t>(found - set.ranks.begin());
}

Status checkRoot(const farandole_request& request, const runtime::Runtime::SetInfo& set,
                 control::Meta& meta) {
  const bool pointToPoint =
      meta.kind == control::Kind::kSend || meta.kind == control::Kind::kReceive;
  if (!control::hasRoot(meta.kind) && !pointToPoint) return {};
  if (meta.kind == control::Kind::kReceive && request.root == FARANDOLE_ANY_RANK) {
    meta.root = collective::kAnyMember;
    return {};
  }
  const auto member = memberOf(set, request.root);
  if (!member) {
    return wrong(request, std::string(pointToPoint ? "peer" : "root") + " rank " +
                              std::to_string(request.root) + " is not a member of process set " +
                              std::to_string(request.set));
  }
  if (pointToPoint && *member == set.me)
    return wrong(request, "a rank cannot send to or receive from itself");
  meta.root = *member;
  return {};
}

Status readReduction(const farandole_request& request, control::Meta& meta) {
  if (!control::isReduction(meta.kind)) return {};
  const auto op = reduceOpFromInt(request.op);
  if (!op) return wrong(request, "unknown reduction " + std::to_string(request.op));
  meta.op = *op;
  meta.prescale = request.prescale;
  meta.postscale = request.postscale;
  return {};
}

Status readSplits(const farandole_request& request, const runtime::Runtime::SetInfo& set,
                  conductor::Request& checked) {
  const control::Kind kind = checked.meta.kind;
  const bool takesSplits = kind == control::Kind::kAlltoall ||
                           kind == control::Kind::kReducescatter ||
                           (kind == control::Kind::kScatter && checked.meta.root == set.me);
  if (!takesSplits) return {};
  const std::int64_t rows = checked.meta.rows();
  const auto members = static_cast<int>(set.ranks.size());
  if (request.nsplits == 0) {
    if (kind == control::Kind::kAlltoall && rows % members != 0) {
      return wrong(request, "alltoall without splits: " + std::to_string(rows) +
                                " rows cannot be divided equally among " + std::to_string(members) +
                                " ranks");
    }
    return {};
  }
  if (request.splits == nullptr || request.nsplits < 0) {
    return wrong(request, std::to_string(request.nsplits) + " splits for " +
                              std::to_string(members) + " ranks");
  }
  const std::span splits(request.splits, static_cast<std::size_t>(request.nsplits));
  if (auto found = control::splitsObjection(splits, rows, members))
    return wrong(request, std::move(*found));
  (kind == control::Kind::kReducescatter ? checked.meta.splits : checked.splits)
      .assign(splits.begin(), splits.end());
  return {};
}

// What of the result there must be room for as far as this request tells. bytes: of its shape.
std::int64_t outputBytes(const conductor::Request& checked, const runtime::Runtime::SetInfo& set,
                         std::int64_t bytes) {
  const control::Meta& meta = checked.meta;
  const auto members = static_cast<std::int64_t>(set.ranks.size());
  switch (meta.kind) {
    case control::Kind::kReducescatter: {
      // As Execution divides them.
      const std::int64_t rows = meta.splits.empty()
                                    ? meta.rows() / members + (set.me < meta.rows() % members)
                                    : meta.splits[static_cast<std::size_t>(set.me)];
      return rows * meta.rowElements() * static_cast<std::int64_t>(sizeOf(meta.dtype));
    }
    case control::Kind::kAllgather:
    case control::Kind::kGather: {
      std::int64_t all = 0;
      // More than any memory has.
      if (__builtin_mul_overflow(bytes, members, &all)) return conductor::kNoLimit - 1;
      return all;
    }
    default: return bytes;
  }
}

Status checkOutput(const farandole_request& request, const runtime::Runtime::SetInfo& set,
                   std::int64_t bytes, conductor::Request& checked) {
  const control::Kind kind = checked.meta.kind;
  if (kind == control::Kind::kSend ||
      (kind == control::Kind::kReduce && checked.meta.root != set.me))
    return {};
  const bool othersDecide = kind == control::Kind::kAllgather || kind == control::Kind::kGather ||
                            kind == control::Kind::kAlltoall || kind == control::Kind::kScatter;
  const std::int64_t needed = outputBytes(checked, set, bytes);
  if (request.output_bytes == FARANDOLE_BYTES_UNKNOWN) {
    checked.outputBytes = needed;
    return {};
  }
  if (request.output_bytes < 0 || (!othersDecide && request.output_bytes < needed)) {
    return wrong(request, "the output has room for " + std::to_string(request.output_bytes) +
                              " bytes, but " + std::to_string(needed) + " are needed");
  }
  checked.outputBytes = request.output_bytes;
  return {};
}

Status checkBuffers(const farandole_request& request, const runtime::Runtime::SetInfo& set,
                    conductor::Request& checked) {
  const control::Kind kind = checked.meta.kind;
  if (kind == control::Kind::kBarrier || kind == control::Kind::kJoin) return {};
  const std::int64_t bytes = checked.meta.bytes();
  const bool onlyRootReads = kind == control::Kind::kBroadcast || kind == control::Kind::kScatter;
  const bool reads =
      kind != control::Kind::kReceive && (!onlyRootReads || checked.meta.root == set.me);
  if (reads && bytes > 0 && request.input == nullptr) {
    return wrong(request, "input is NULL but the shape has " +
                              std::to_string(checked.meta.elements()) + " elements");
  }
  if (kind == control::Kind::kReceive && bytes > 0 && request.output == nullptr) {
    return wrong(request, "recv needs an output buffer");
  }
  if (request.output != nullptr) {
    FARANDOLE_RETURN_IF_ERROR(checkOutput(request, set, bytes, checked));
  }
  const auto* in = static_cast<const std::byte*>(request.input);
  const auto* out = static_cast<const std::byte*>(request.output);
  if (in == nullptr || out == nullptr || in == out) return {};
  // The output is at least as large as a part; what can be told apart here is told.
  const std::less<const std::byte*> before;
  if (kind == control::Kind::kAllreduce && before(in, out + bytes) && before(out, in + bytes)) {
    return wrong(request, "input and output overlap without being the same");
  }
  return {};
}

}  // namespace

Status checkRequest(const runtime::Runtime::SetInfo* set, std::int32_t rank,
                    const farandole_request& request, conductor::Request& checked) {
  if (set == nullptr) {
    return wrong(request, "there is no process set " + std::to_string(request.set));
  }
  if (set->me < 0) {
    return wrong(request, "rank " + std::to_string(rank) + " is not a member of process set " +
                              std::to_string(request.set));
  }
  if (request.operation < 0 || request.operation >= control::kKindCount) {
    return wrong(request, "unknown operation " + std::to_string(request.operation));
  }
  checked.meta.kind = static_cast<control::Kind>(request.operation);
  const bool hasData =
      checked.meta.kind != control::Kind::kBarrier && checked.meta.kind != control::Kind::kJoin;
  if (hasData) {
    const auto dtype = dtypeFromInt(request.dtype);
    if (!dtype) return wrong(request, "unknown dtype " + std::to_string(request.dtype));
    checked.meta.dtype = *dtype;
    if (request.ndim < 0 || request.ndim > static_cast<std::int32_t>(control::kMaxDimensions) ||
        (request.ndim > 0 && request.shape == nullptr)) {
      return wrong(request, "a shape of " + std::to_string(request.ndim) + " dimensions (0 to " +
                                std::to_string(control::kMaxDimensions) + " are possible)");
    }
    if (request.ndim > 0) checked.meta.shape.assign(request.shape, request.shape + request.ndim);
  }
  if (request.name != nullptr) {
    const std::size_t length = ::strnlen(request.name, control::kMaxNameBytes + 1);
    if (length == 0 || length > control::kMaxNameBytes) {
      return Status::invalid("a name must have 1 to " + std::to_string(control::kMaxNameBytes) +
                             " bytes");
    }
    checked.name.assign(request.name, length);
  }
  if (request.tag < 0) return wrong(request, "a tag must not be negative");
  FARANDOLE_RETURN_IF_ERROR(checkRoot(request, *set, checked.meta));
  FARANDOLE_RETURN_IF_ERROR(readReduction(request, checked.meta));
  if (auto found = control::objection(checked.meta, static_cast<int>(set->ranks.size()))) {
    return wrong(request, std::move(*found));
  }
  FARANDOLE_RETURN_IF_ERROR(readSplits(request, *set, checked));
  FARANDOLE_RETURN_IF_ERROR(checkBuffers(request, *set, checked));

  checked.input = request.input;
  checked.output = request.output;
  checked.tag = request.tag;
  checked.group = request.group;
  checked.willWait = (request.flags & FARANDOLE_FLAG_WILL_WAIT) != 0;
  checked.ordered = (request.flags & FARANDOLE_FLAG_ORDERED) != 0;
  checked.callbackAnywhere = (request.flags & FARANDOLE_FLAG_CALLBACK_ANYWHERE) != 0;
  if (request.allocate != nullptr) {
    checked.allocate = [allocate = request.allocate, user = request.allocate_user](
                           std::size_t bytes, const std::vector<std::int64_t>& shape) {
      return allocate(user, bytes, shape.data(), static_cast<std::int32_t>(shape.size()));
    };
  }
  if (request.on_complete != nullptr) {
    checked.onComplete = [callback = request.on_complete, user = request.on_complete_user](
                             std::uint64_t handle, Code code) {
      callback(user, handle, static_cast<farandole_code>(code));
    };
  }
  if (request.queue != nullptr) {
    checked.queue = request.queue->queue;
    checked.queueTag = request.queue_tag;
  }
  return {};
}

Status completeRequest(const farandole_request& given, farandole_request& whole) {
  constexpr std::size_t kLeast = offsetof(farandole_request, prescale);
  if (given.struct_size < kLeast) {
    return Status::invalid("farandole_request.struct_size is " + std::to_string(given.struct_size) +
                           ": initialise the struct with FARANDOLE_REQUEST_INIT");
  }
  whole = FARANDOLE_REQUEST_INIT;
  std::memcpy(&whole, &given, std::min<std::size_t>(given.struct_size, sizeof whole));
  return {};
}

Status checkRequest(runtime::Runtime& runtime, const farandole_request& given,
                    conductor::Request& checked) {
  const std::int32_t rank = runtime.config().rank;
  if (given.struct_size >= sizeof given) {
    return checkRequest(runtime.set(given.set).get(), rank, given, checked);
  }
  farandole_request whole;
  FARANDOLE_RETURN_IF_ERROR(completeRequest(given, whole));
  return checkRequest(runtime.set(whole.set).get(), rank, whole, checked);
}

}  // namespace farandole::api
