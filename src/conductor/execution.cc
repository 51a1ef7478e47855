#include "conductor/execution.h"

#include <cstring>
#include <limits>
#include <numeric>
#include <span>

#include "collective/shm/gate.h"
#include "conductor/output.h"

namespace farandole {
namespace {

std::int64_t rowsOf(const std::vector<std::int64_t>& shape) { return shape.empty() ? 1 : shape[0]; }

// shape with its first dimension replaced; a scalar becomes a vector.
std::vector<std::int64_t> withRows(std::vector<std::int64_t> shape, std::int64_t rows) {
  if (shape.empty()) return {rows};
  shape[0] = rows;
  return shape;
}

std::int64_t sum(std::span<const std::int64_t> values) {
  return std::accumulate(values.begin(), values.end(), std::int64_t{0});
}

// `memory` after the elements of the members before this one.
const std::byte* placeOf(int member, const void* memory, std::span<const std::int64_t> counts,
                         DType dtype) {
  const auto before = static_cast<std::size_t>(sum(counts.first(static_cast<std::size_t>(member))));
  return static_cast<const std::byte*>(memory) + before * sizeOf(dtype);
}

}  // namespace

std::vector<std::int64_t> evenSplits(std::int64_t rows, int members) {
  std::vector<std::int64_t> splits(static_cast<std::size_t>(members), rows / members);
  for (std::int64_t i = 0; i < rows % members; ++i) ++splits[static_cast<std::size_t>(i)];
  return splits;
}

Execution::Execution(Communicator& communicator, std::vector<Part> parts, int joined)
    : communicator_(communicator),
      parts_(std::move(parts)),
      joined_(joined),
      stages_(stagesOf(parts_.front().meta.kind)) {
  operation_ = (this->*stages_[0])();
}

std::vector<Execution::Stage> Execution::stagesOf(Kind kind) {
  switch (kind) {
    case Kind::kAllreduce: return {&Execution::startAllreduce};
    case Kind::kAllgather: return {&Execution::exchangeRows, &Execution::startAllgather};
    case Kind::kBroadcast: return {&Execution::startBroadcast};
    case Kind::kAlltoall: return {&Execution::exchangeSplits, &Execution::startAlltoall};
    case Kind::kReducescatter: return {&Execution::startReducescatter};
    case Kind::kReduce: return {&Execution::startReduce};
    case Kind::kGather: return {&Execution::exchangeRows, &Execution::startGather};
    case Kind::kScatter: return {&Execution::broadcastSplits, &Execution::startScatter};
    case Kind::kBarrier:
    case Kind::kJoin:
    case Kind::kSend:
    case Kind::kReceive: break;
  }
  return {&Execution::startBarrier};
}

Progress Execution::progress() {
  while (state_ == Progress::kPending) {
    if (operation_ == nullptr) {
      state_ = Progress::kFailed;
      break;
    }
    const Progress now = operation_->progress();
    if (now == Progress::kPending) return now;
    if (now == Progress::kFailed) {
      status_ = operation_->status();
      state_ = now;
      break;
    }
    if (++stage_ == stages_.size()) {
      finish();
      state_ = Progress::kDone;
    } else {
      operation_ = (this->*stages_[stage_])();
    }
  }
  return state_;
}

void Execution::finish() {
  for (const auto& part : parts_) {
    if (!part.entry) continue;
    const auto& request = part.entry->request;
    const bool copiesAtRoot =
        part.meta.kind == Kind::kBroadcast && communicator_.rank() == part.meta.root;
    // The engine sends a root's data from where it lies.
    if (copiesAtRoot && part.entry->outcome.data != request.input &&
        part.entry->outcome.bytes > 0) {
      std::memcpy(part.entry->outcome.data, request.input, part.entry->outcome.bytes);
    }
  }
}

OperationPtr Execution::fail(Status status) {
  status_ = std::move(status);
  return nullptr;
}

void* Execution::scratch(std::size_t bytes) {
  void* memory = std::aligned_alloc(64, (bytes + 64) & ~std::size_t{63});
  if (memory == nullptr) {
    status_ =
        Status::outOfMemory("no memory for " + std::to_string(bytes) + " bytes of working space");
    return nullptr;
  }
  scratch_.emplace_back(memory);
  return memory;
}

const void* Execution::inputBeside(const Part& part, std::int64_t count, const void* out,
                                   std::int64_t outCount, const void* own) {
  const void* in = part.entry->request.input;
  const std::size_t element = sizeOf(part.meta.dtype);
  const std::size_t bytes = static_cast<std::size_t>(count) * element;
  if (in == own || !overlap(in, bytes, out, static_cast<std::size_t>(outCount) * element)) {
    return in;
  }
  void* copied = scratch(bytes);
  if (copied != nullptr) std::memcpy(copied, in, bytes);
  return copied;
}

void* Execution::outputFor(const Part& part, std::vector<std::int64_t> shape) {
  auto memory = provideOutput(*part.entry, shape);
  if (!memory.ok()) {
    status_ = memory.status();
    return nullptr;
  }
  bytes_ += static_cast<std::int64_t>(part.entry->outcome.bytes);
  return *memory;
}

Scale Execution::scaleOf(const Meta& meta) const {
  Scale scale{meta.prescale, meta.postscale, 1};
  // Those that have joined do not count: the average is over the ranks that brought data.
  if (meta.op == ReduceOp::kAverage) scale.divisor = communicator_.size() - joined_;
  return scale;
}

ReduceOp Execution::engineOp(const Meta& meta) {
  return meta.op == ReduceOp::kAverage ? ReduceOp::kSum : meta.op;
}

OperationPtr Execution::startAllreduce() {
  const Meta& first = parts_.front().meta;
  std::vector<Piece> pieces;
  pieces.reserve(parts_.size());
  for (const auto& part : parts_) {
    const std::int64_t count = part.meta.elements();
    if (part.entry) {
      void* out = outputFor(part, part.meta.shape);
      if (out == nullptr) return nullptr;
      pieces.push_back({part.entry->request.input, out, count});
    } else {
      void* neutral = scratch(static_cast<std::size_t>(part.meta.bytes()));
      if (neutral == nullptr) return nullptr;
      fillNeutral(neutral, count, part.meta.dtype, engineOp(first));
      pieces.push_back({neutral, neutral, count});
    }
  }
  return communicator_.allreduce(pieces, first.dtype, engineOp(first), scaleOf(first));
}

OperationPtr Execution::startBroadcast() {
  const Meta& first = parts_.front().meta;
  std::vector<Piece> pieces;
  for (const auto& part : parts_) {
    void* out = part.entry ? outputFor(part, part.meta.shape)
                           : scratch(static_cast<std::size_t>(part.meta.bytes()));
    if (out == nullptr) return nullptr;
    const bool root = communicator_.rank() == first.root;
    const void* in = root && part.entry ? part.entry->request.input : out;
    // A root's piece is only read; what the user wants as output is copied in finish().
    pieces.push_back({in, root ? const_cast<void*>(in) : out, part.meta.elements()});
  }
  return communicator_.broadcast(pieces, first.dtype, first.root);
}

OperationPtr Execution::startReduce() {
  const Part& part = parts_.front();
  const bool root = communicator_.rank() == part.meta.root;
  void* out = root ? outputFor(part, part.meta.shape) : nullptr;
  if (root && out == nullptr) return nullptr;
  return communicator_.reduce(part.entry->request.input, out, part.meta.elements(), part.meta.dtype,
                              engineOp(part.meta), scaleOf(part.meta), part.meta.root);
}

OperationPtr Execution::startReducescatter() {
  const Part& part = parts_.front();
  auto rows = part.meta.splits;
  if (rows.empty()) rows = evenSplits(rowsOf(part.meta.shape), communicator_.size());
  std::vector<std::int64_t> counts;
  if (!rowsToCounts(rows, part.meta.rowElements(), counts)) return nullptr;
  const auto mine = rows[static_cast<std::size_t>(communicator_.rank())];
  void* out = outputFor(part, withRows(part.meta.shape, mine));
  if (out == nullptr) return nullptr;
  return communicator_.reducescatter(part.entry->request.input, out, counts, part.meta.dtype,
                                     engineOp(part.meta), scaleOf(part.meta));
}

OperationPtr Execution::startBarrier() { return communicator_.barrier(); }

OperationPtr Execution::exchangeRows() {
  const Part& part = parts_.front();
  mine_ = {part.entry ? rowsOf(part.entry->request.meta.shape) : 0};
  sizes_.assign(static_cast<std::size_t>(communicator_.size()), 0);
  const std::vector<std::int64_t> ones(sizes_.size(), 1);
  return communicator_.allgather(mine_.data(), sizes_.data(), ones, DType::kInt64);
}

bool Execution::rowsToCounts(const std::vector<std::int64_t>& rows, std::int64_t rowElements,
                             std::vector<std::int64_t>& counts) {
  const std::int64_t unit =
      rowElements * static_cast<std::int64_t>(sizeOf(parts_.front().meta.dtype));
  const std::int64_t limit = unit == 0 ? std::numeric_limits<std::int64_t>::max()
                                       : std::numeric_limits<std::int64_t>::max() / unit;
  std::int64_t total = 0;
  counts.clear();
  for (const auto each : rows) {
    if (each < 0 || each > limit - total) {
      status_ = Status::internal("a rank told " + std::to_string(each) + " rows, which cannot be");
      return false;
    }
    total += each;
    counts.push_back(each * rowElements);
  }
  return true;
}

OperationPtr Execution::startAllgather() {
  const Part& part = parts_.front();
  std::vector<std::int64_t> counts;
  if (!rowsToCounts(sizes_, part.meta.rowElements(), counts)) return nullptr;
  const std::int64_t rows = sum(sizes_);
  void* out = nullptr;
  if (part.entry) {
    out = outputFor(part, withRows(part.meta.shape, rows));
    part.entry->outcome.splits = sizes_;
  } else {
    out = scratch(static_cast<std::size_t>(sum(counts)) * sizeOf(part.meta.dtype));
  }
  if (out == nullptr) return nullptr;
  const void* in = nullptr;
  if (part.entry) {
    const int me = communicator_.rank();
    in = inputBeside(part, counts[static_cast<std::size_t>(me)], out, sum(counts),
                     placeOf(me, out, counts, part.meta.dtype));
    if (!status_.ok()) return nullptr;
  }
  return communicator_.allgather(in, out, counts, part.meta.dtype);
}

OperationPtr Execution::startGather() {
  const Part& part = parts_.front();
  std::vector<std::int64_t> counts;
  if (!rowsToCounts(sizes_, part.meta.rowElements(), counts)) return nullptr;
  void* out = nullptr;
  const void* in = part.entry->request.input;
  if (const int me = communicator_.rank(); me == part.meta.root) {
    out = outputFor(part, withRows(part.meta.shape, sum(sizes_)));
    if (out == nullptr) return nullptr;
    part.entry->outcome.splits = sizes_;
    in = inputBeside(part, counts[static_cast<std::size_t>(me)], out, sum(counts),
                     placeOf(me, out, counts, part.meta.dtype));
    if (!status_.ok()) return nullptr;
  }
  return communicator_.gather(in, out, counts, part.meta.dtype, part.meta.root);
}

OperationPtr Execution::exchangeSplits() {
  const Part& part = parts_.front();
  const auto members = static_cast<std::size_t>(communicator_.size());
  mine_ = part.entry->request.splits;
  if (mine_.empty())
    mine_ = evenSplits(rowsOf(part.entry->request.meta.shape), communicator_.size());
  sizes_.assign(members * members, 0);
  const std::vector<std::int64_t> counts(members, communicator_.size());
  return communicator_.allgather(mine_.data(), sizes_.data(), counts, DType::kInt64);
}

OperationPtr Execution::startAlltoall() {
  const Part& part = parts_.front();
  const auto members = static_cast<std::size_t>(communicator_.size());
  std::vector<std::int64_t> received(members);
  for (std::size_t i = 0; i < members; ++i) {
    received[i] = sizes_[i * members + static_cast<std::size_t>(communicator_.rank())];
  }
  std::vector<std::int64_t> sendCounts;
  std::vector<std::int64_t> receiveCounts;
  if (!rowsToCounts(mine_, part.meta.rowElements(), sendCounts) ||
      !rowsToCounts(received, part.meta.rowElements(), receiveCounts)) {
    return nullptr;
  }
  void* out = outputFor(part, withRows(part.meta.shape, sum(received)));
  if (out == nullptr) return nullptr;
  part.entry->outcome.splits = std::move(received);
  const void* in = inputBeside(part, sum(sendCounts), out, sum(receiveCounts), nullptr);
  if (!status_.ok()) return nullptr;
  return communicator_.alltoall(in, sendCounts, out, receiveCounts, part.meta.dtype);
}

OperationPtr Execution::broadcastSplits() {
  const Part& part = parts_.front();
  if (communicator_.rank() == part.meta.root) {
    sizes_ = part.entry->request.splits;
    if (sizes_.empty()) sizes_ = evenSplits(rowsOf(part.meta.shape), communicator_.size());
  }
  sizes_.resize(static_cast<std::size_t>(communicator_.size()));
  const Piece piece{sizes_.data(), sizes_.data(), communicator_.size()};
  return communicator_.broadcast(std::span(&piece, 1), DType::kInt64, part.meta.root);
}

OperationPtr Execution::startScatter() {
  const Part& part = parts_.front();
  std::vector<std::int64_t> counts;
  if (!rowsToCounts(sizes_, part.meta.rowElements(), counts)) return nullptr;
  const auto mine = sizes_[static_cast<std::size_t>(communicator_.rank())];
  void* out = outputFor(part, withRows(part.meta.shape, mine));
  if (out == nullptr) return nullptr;
  const void* in = part.entry->request.input;
  const int me = communicator_.rank();
  if (me == part.meta.root && out != placeOf(me, in, counts, part.meta.dtype)) {
    in = inputBeside(part, sum(counts), out, counts[static_cast<std::size_t>(me)], nullptr);
    if (!status_.ok()) return nullptr;
  }
  return communicator_.scatter(in, out, counts, part.meta.dtype, part.meta.root);
}

}  // namespace farandole
