#include "conductor/execution.h"

#include <cstring>
#include <limits>
#include <numeric>
#include <span>

#include "collective/segments.h"
#include "conductor/output.h"

namespace farandole {
namespace {

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
      way_(wayOf(parts_.front().meta.kind)) {}

Execution::Way Execution::wayOf(Kind kind) {
  using E = Execution;
  switch (kind) {
    case Kind::kAllreduce: return {&E::startAllreduce};
    case Kind::kAllgather: return {&E::startAllgather, &E::exchangeRows, &E::weighAllgather};
    case Kind::kBroadcast: return {&E::startBroadcast};
    case Kind::kAlltoall: return {&E::startAlltoall, &E::exchangeSplits, &E::weighAlltoall};
    case Kind::kReducescatter: return {&E::startReducescatter};
    case Kind::kReduce: return {&E::startReduce};
    case Kind::kGather: return {&E::startGather, &E::exchangeRows, &E::weighGather};
    case Kind::kScatter: return {&E::startScatter, &E::exchangeRootsSplits, &E::weighScatter};
    case Kind::kBarrier:
    case Kind::kJoin:
    case Kind::kSend:
    case Kind::kReceive: break;
  }
  return {&E::startBarrier};
}

Progress Execution::settle() {
  if (settled_) return state_ == Progress::kFailed ? state_ : Progress::kDone;
  if (way_.exchange != nullptr) {
    if (operation_ == nullptr) operation_ = (this->*way_.exchange)();
    const Progress now = operation_->progress();
    if (now == Progress::kPending) return now;
    if (now == Progress::kFailed) {
      status_ = operation_->status();
      state_ = now;
    } else if (!(this->*way_.weigh)()) {
      state_ = tooSmall_ ? Progress::kDone : Progress::kFailed;
    }
  }
  settled_ = true;
  return settle();
}

Progress Execution::progress() {
  if (const Progress now = settle(); now != Progress::kDone) return now;
  if (state_ != Progress::kPending) return state_;
  if (!started_) {
    started_ = true;
    operation_ = (this->*way_.start)();
  }
  const Progress now = operation_ == nullptr ? Progress::kFailed : operation_->progress();
  if (now == Progress::kPending) return now;
  if (now == Progress::kDone) {
    finish();
  } else if (operation_ != nullptr) {
    status_ = operation_->status();
  }
  return state_ = now;
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

void* Execution::outputFor(const Part& part, const std::vector<std::int64_t>& shape) {
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
  if (rows.empty()) rows = evenSplits(part.meta.rows(), communicator_.size());
  std::vector<std::int64_t> counts;
  if (!rowsToCounts(rows, part.meta.rowElements(), counts)) return nullptr;
  const auto mine = rows[static_cast<std::size_t>(communicator_.rank())];
  void* out = outputFor(part, withRows(part.meta.shape, mine));
  if (out == nullptr) return nullptr;
  return communicator_.reducescatter(part.entry->request.input, out, counts, part.meta.dtype,
                                     engineOp(part.meta), scaleOf(part.meta));
}

OperationPtr Execution::startBarrier() { return communicator_.barrier(); }

std::int64_t Execution::room() const {
  const EntryPtr& entry = parts_.front().entry;
  return entry ? entry->request.outputBytes : kNoLimit;
}

OperationPtr Execution::exchange(const std::vector<std::int64_t>& counts) {
  told_.assign(static_cast<std::size_t>(sum(counts)), 0);
  return communicator_.allgather(mine_.data(), told_.data(), counts, DType::kInt64);
}

bool Execution::hasRoom(int member, std::int64_t elements) {
  const std::int64_t needed =
      elements * static_cast<std::int64_t>(sizeOf(parts_.front().meta.dtype));
  const std::int64_t room = rooms_[static_cast<std::size_t>(member)];
  if (needed > room) tooSmall_ = TooSmall{member, room, needed};
  return needed <= room;
}

OperationPtr Execution::exchangeRows() {
  const Part& part = parts_.front();
  mine_ = {room(), part.entry ? part.entry->request.meta.rows() : 0};
  return exchange(std::vector<std::int64_t>(static_cast<std::size_t>(communicator_.size()), 2));
}

bool Execution::takeRows() {
  sizes_.clear();
  rooms_.clear();
  for (std::size_t i = 0; i < told_.size(); i += 2) {
    rooms_.push_back(told_[i]);
    sizes_.push_back(told_[i + 1]);
  }
  // As much of the input is read.
  if (sizes_[static_cast<std::size_t>(communicator_.rank())] != mine_[1]) {
    status_ = Status::internal("the ranks' rows have been garbled");
    return false;
  }
  return rowsToCounts(sizes_, parts_.front().meta.rowElements(), counts_);
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

bool Execution::weighAllgather() {
  if (!takeRows()) return false;
  for (int i = 0; i < communicator_.size(); ++i) {
    if (!hasRoom(i, sum(counts_))) return false;
  }
  return true;
}

OperationPtr Execution::startAllgather() {
  const Part& part = parts_.front();
  void* out = nullptr;
  if (part.entry) {
    out = outputFor(part, withRows(part.meta.shape, sum(sizes_)));
    part.entry->outcome.splits = sizes_;
  } else {
    out = scratch(static_cast<std::size_t>(sum(counts_)) * sizeOf(part.meta.dtype));
  }
  if (out == nullptr) return nullptr;
  const void* in = nullptr;
  if (part.entry) {
    const int me = communicator_.rank();
    in = inputBeside(part, counts_[static_cast<std::size_t>(me)], out, sum(counts_),
                     placeOf(me, out, counts_, part.meta.dtype));
    if (!status_.ok()) return nullptr;
  }
  return communicator_.allgather(in, out, counts_, part.meta.dtype);
}

bool Execution::weighGather() {
  return takeRows() && hasRoom(parts_.front().meta.root, sum(counts_));
}

OperationPtr Execution::startGather() {
  const Part& part = parts_.front();
  void* out = nullptr;
  const void* in = part.entry->request.input;
  if (const int me = communicator_.rank(); me == part.meta.root) {
    out = outputFor(part, withRows(part.meta.shape, sum(sizes_)));
    if (out == nullptr) return nullptr;
    part.entry->outcome.splits = sizes_;
    in = inputBeside(part, counts_[static_cast<std::size_t>(me)], out, sum(counts_),
                     placeOf(me, out, counts_, part.meta.dtype));
    if (!status_.ok()) return nullptr;
  }
  return communicator_.gather(in, out, counts_, part.meta.dtype, part.meta.root);
}

OperationPtr Execution::exchangeSplits() {
  const Request& request = parts_.front().entry->request;
  const auto members = static_cast<std::size_t>(communicator_.size());
  mine_ = request.splits;
  if (mine_.empty()) mine_ = evenSplits(request.meta.rows(), communicator_.size());
  mine_.insert(mine_.begin(), room());
  return exchange(std::vector<std::int64_t>(members, communicator_.size() + 1));
}

bool Execution::weighAlltoall() {
  const auto members = static_cast<std::size_t>(communicator_.size());
  const auto me = static_cast<std::size_t>(communicator_.rank());
  rooms_.clear();
  for (std::size_t i = 0; i < members; ++i) rooms_.push_back(told_[i * (members + 1)]);
  std::vector<std::int64_t> rows(members);
  std::vector<std::int64_t> counts;
  for (std::size_t to = 0; to < members; ++to) {
    for (std::size_t from = 0; from < members; ++from) {
      rows[from] = told_[from * (members + 1) + 1 + to];
    }
    if (!rowsToCounts(rows, parts_.front().meta.rowElements(), counts)) return false;
    if (!hasRoom(static_cast<int>(to), sum(counts))) return false;
    if (to == me) {
      sizes_ = rows;
      counts_ = counts;
    }
  }
  return true;
}

OperationPtr Execution::startAlltoall() {
  const Part& part = parts_.front();
  std::vector<std::int64_t> sendCounts;
  if (!rowsToCounts({mine_.begin() + 1, mine_.end()}, part.meta.rowElements(), sendCounts)) {
    return nullptr;
  }
  void* out = outputFor(part, withRows(part.meta.shape, sum(sizes_)));
  if (out == nullptr) return nullptr;
  part.entry->outcome.splits = sizes_;
  const void* in = inputBeside(part, sum(sendCounts), out, sum(counts_), nullptr);
  if (!status_.ok()) return nullptr;
  return communicator_.alltoall(in, sendCounts, out, counts_, part.meta.dtype);
}

OperationPtr Execution::exchangeRootsSplits() {
  const Part& part = parts_.front();
  const auto root = static_cast<std::size_t>(part.meta.root);
  mine_.clear();
  if (communicator_.rank() == part.meta.root) {
    mine_ = part.entry->request.splits;
    if (mine_.empty()) mine_ = evenSplits(part.meta.rows(), communicator_.size());
  }
  mine_.insert(mine_.begin(), room());
  std::vector<std::int64_t> counts(static_cast<std::size_t>(communicator_.size()), 1);
  counts[root] += communicator_.size();
  return exchange(counts);
}

bool Execution::weighScatter() {
  const Part& part = parts_.front();
  // The root's splits lie behind its room; the root itself reads its input by its own.
  const auto splits = told_.begin() + part.meta.root + 1;
  sizes_.assign(splits, splits + communicator_.size());
  rooms_ = std::move(told_);
  rooms_.erase(rooms_.begin() + part.meta.root + 1,
               rooms_.begin() + part.meta.root + 1 + communicator_.size());
  if (communicator_.rank() == part.meta.root) sizes_.assign(mine_.begin() + 1, mine_.end());
  if (!rowsToCounts(sizes_, part.meta.rowElements(), counts_)) return false;
  for (int i = 0; i < communicator_.size(); ++i) {
    if (!hasRoom(i, counts_[static_cast<std::size_t>(i)])) return false;
  }
  return true;
}

OperationPtr Execution::startScatter() {
  const Part& part = parts_.front();
  const int me = communicator_.rank();
  const auto mine = static_cast<std::size_t>(me);
  void* out = outputFor(part, withRows(part.meta.shape, sizes_[mine]));
  if (out == nullptr) return nullptr;
  const void* in = part.entry->request.input;
  if (me == part.meta.root && out != placeOf(me, in, counts_, part.meta.dtype)) {
    in = inputBeside(part, sum(counts_), out, counts_[mine], nullptr);
    if (!status_.ok()) return nullptr;
  }
  return communicator_.scatter(in, out, counts_, part.meta.dtype, part.meta.root);
}

}  // namespace farandole
