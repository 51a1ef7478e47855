#include "conductor/execution.h"

#include <cstring>
#include <numeric>
#include <span>

#include "collective/segments.h"

namespace farandole::conductor {
namespace {

std::int64_t sum(std::span<const std::int64_t> values) {
  return std::accumulate(values.begin(), values.end(), std::int64_t{0});
}

// `memory` after the elements of the members before this one.
const std::byte* placeOf(int member, const void* memory, std::span<const std::int64_t> counts,
                         DType dtype) {
  const auto before = static_cast<std::size_t>(sum(counts.first(static_cast<std::size_t>(member))));
  return static_cast<const std::byte*>(memory) + before * sizeOf(dtype);
}

// Behind what is there: the rows of each member, as given, or as even as possible with the first
// ones being larger.
void appendSplits(std::vector<std::int64_t>& to, std::span<const std::int64_t> given,
                  std::int64_t rows, int members) {
  if (!given.empty()) {
    to.insert(to.end(), given.begin(), given.end());
    return;
  }
  const std::int64_t least = rows / members;
  const std::int64_t larger = rows % members;
  for (int i = 0; i < members; ++i) to.push_back(least + (i < larger));
}

}  // namespace

Execution::Execution(collective::Communicator& communicator, std::vector<EntryPtr> entries,
                     int joined, TimePoint now)
    : communicator_(communicator),
      entries_(std::move(entries)),
      joined_(joined),
      way_(wayOf(entries_.front()->agreed->kind)),
      startedAt_(now),
      settled_(way_.exchange == nullptr) {}

Execution::Way Execution::wayOf(control::Kind kind) {
  using E = Execution;
  switch (kind) {
    case control::Kind::kAllreduce: return {&E::startAllreduce};
    case control::Kind::kAllgather:
      return {&E::startAllgather, &E::exchangeRows, &E::weighAllgather};
    case control::Kind::kBroadcast: return {&E::startBroadcast};
    case control::Kind::kAlltoall:
      return {&E::startAlltoall, &E::exchangeSplits, &E::weighAlltoall};
    case control::Kind::kReducescatter: return {&E::startReducescatter};
    case control::Kind::kReduce: return {&E::startReduce};
    case control::Kind::kGather: return {&E::startGather, &E::exchangeRows, &E::weighGather};
    case control::Kind::kScatter:
      return {&E::startScatter, &E::exchangeRootsSplits, &E::weighScatter};
    case control::Kind::kBarrier:
    case control::Kind::kJoin:
    case control::Kind::kSend:
    case control::Kind::kReceive: break;
  }
  return {&E::startBarrier};
}

collective::Progress Execution::settle() {
  if (!settled_) {
    if (operation_ == nullptr) operation_ = (this->*way_.exchange)();
    const collective::Progress now = operation_->progress();
    if (now == collective::Progress::kPending) return now;
    if (now == collective::Progress::kFailed) {
      status_ = operation_->status();
      state_ = now;
    } else if (!(this->*way_.weigh)()) {
      state_ = tooSmall_ ? collective::Progress::kDone : collective::Progress::kFailed;
    }
    settled_ = true;
  }
  return state_ == collective::Progress::kFailed ? state_ : collective::Progress::kDone;
}

collective::Progress Execution::progress() {
  if (!settled_ && settle() == collective::Progress::kPending)
    return collective::Progress::kPending;
  if (state_ != collective::Progress::kPending) return state_;
  if (!started_) {
    started_ = true;
    operation_ = (this->*way_.start)();
  }
  const collective::Progress now =
      operation_ == nullptr ? collective::Progress::kFailed : operation_->progress();
  if (now == collective::Progress::kPending) return now;
  if (now == collective::Progress::kDone) {
    finish();
  } else if (operation_ != nullptr) {
    status_ = operation_->status();
  }
  return state_ = now;
}

void Execution::finish() {
  for (const auto& entry : entries_) {
    if (entry->neutral) continue;
    const auto& request = entry->request;
    const bool copiesAtRoot = entry->agreed->kind == control::Kind::kBroadcast &&
                              communicator_.member() == entry->agreed->root;
    // The engine sends a root's data from where it lies.
    if (copiesAtRoot && entry->outcome.data != request.input && entry->outcome.bytes > 0) {
      std::memcpy(entry->outcome.data, request.input, entry->outcome.bytes);
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

const void* Execution::inputBeside(Entry& entry, std::int64_t count, const void* out,
                                   std::int64_t outCount, const void* own) {
  const void* in = entry.request.input;
  const std::size_t element = sizeOf(entry.agreed->dtype);
  const std::size_t bytes = static_cast<std::size_t>(count) * element;
  if (in == own ||
      !collective::overlap(in, bytes, out, static_cast<std::size_t>(outCount) * element)) {
    return in;
  }
  void* copied = scratch(bytes);
  if (copied != nullptr) std::memcpy(copied, in, bytes);
  return copied;
}

void* Execution::outputFor(Entry& entry, std::optional<std::int64_t> rows) {
  auto memory = provideOutput(entry, entry.agreed->shape, rows);
  if (!memory.ok()) {
    status_ = memory.status();
    return nullptr;
  }
  bytes_ += static_cast<std::int64_t>(entry.outcome.bytes);
  return *memory;
}

Scale Execution::scaleOf(const control::Meta& meta) const {
  Scale scale{meta.prescale, meta.postscale, 1};
  // Those that have joined do not count: the average is over the ranks that brought data.
  if (meta.op == ReduceOp::kAverage) scale.divisor = communicator_.size() - joined_;
  return scale;
}

ReduceOp Execution::engineOp(const control::Meta& meta) {
  return meta.op == ReduceOp::kAverage ? ReduceOp::kSum : meta.op;
}

collective::OperationPtr Execution::startAllreduce() {
  const control::Meta& first = *entries_.front()->agreed;
  std::vector<collective::Piece> pieces;
  pieces.reserve(entries_.size());
  for (const auto& entry : entries_) {
    const std::int64_t count = entry->agreed->elements();
    if (!entry->neutral) {
      void* out = outputFor(*entry);
      if (out == nullptr) return nullptr;
      pieces.push_back({entry->request.input, out, count});
    } else {
      void* neutral = scratch(static_cast<std::size_t>(entry->agreed->bytes()));
      if (neutral == nullptr) return nullptr;
      fillNeutral(neutral, count, entry->agreed->dtype, engineOp(first));
      pieces.push_back({neutral, neutral, count});
    }
  }
  return communicator_.allreduce(pieces, first.dtype, engineOp(first), scaleOf(first));
}

collective::OperationPtr Execution::startBroadcast() {
  const control::Meta& first = *entries_.front()->agreed;
  std::vector<collective::Piece> pieces;
  pieces.reserve(entries_.size());
  for (const auto& entry : entries_) {
    void* out = !entry->neutral ? outputFor(*entry)
                                : scratch(static_cast<std::size_t>(entry->agreed->bytes()));
    if (out == nullptr) return nullptr;
    const bool root = communicator_.member() == first.root;
    const void* in = root && !entry->neutral ? entry->request.input : out;
    // A root's piece is only read; what the user wants as output is copied in finish().
    pieces.push_back({in, root ? const_cast<void*>(in) : out, entry->agreed->elements()});
  }
  return communicator_.broadcast(pieces, first.dtype, first.root);
}

collective::OperationPtr Execution::startReduce() {
  Entry& entry = *entries_.front();
  const bool root = communicator_.member() == entry.agreed->root;
  void* out = root ? outputFor(entry) : nullptr;
  if (root && out == nullptr) return nullptr;
  return communicator_.reduce(entry.request.input, out, entry.agreed->elements(),
                              entry.agreed->dtype, engineOp(*entry.agreed), scaleOf(*entry.agreed),
                              entry.agreed->root);
}

collective::OperationPtr Execution::startReducescatter() {
  Entry& entry = *entries_.front();
  sizes_.reserve(static_cast<std::size_t>(communicator_.size()));
  appendSplits(sizes_, entry.agreed->splits, entry.agreed->rows(), communicator_.size());
  const std::int64_t mine = sizes_[static_cast<std::size_t>(communicator_.member())];
  void* out = outputFor(entry, mine);
  if (out == nullptr) return nullptr;
  const std::int64_t rowElements = entry.agreed->rowElements();
  for (auto& each : sizes_) each *= rowElements;
  return communicator_.reducescatter(entry.request.input, out, sizes_, entry.agreed->dtype,
                                     engineOp(*entry.agreed), scaleOf(*entry.agreed));
}

collective::OperationPtr Execution::startBarrier() { return communicator_.barrier(); }

std::int64_t Execution::room() const { return entries_.front()->request.outputBytes; }

collective::OperationPtr Execution::exchange() {
  gathered_.resize(static_cast<std::size_t>(sum(counts_)));
  return communicator_.allgather(mine_.data(), gathered_.data(), counts_, DType::kInt64);
}

collective::OperationPtr Execution::exchangeRows() {
  Entry& entry = *entries_.front();
  mine_ = {room(), entry.neutral ? 0 : entry.request.meta.rows()};
  counts_.assign(static_cast<std::size_t>(communicator_.size()), 2);
  return exchange();
}

std::int64_t Execution::rowBytes() const {
  const control::Meta& meta = *entries_.front()->agreed;
  return meta.rowElements() * static_cast<std::int64_t>(sizeOf(meta.dtype));
}

bool Execution::addRows(std::int64_t rows, std::int64_t rowBytes, std::int64_t& total) {
  std::int64_t bytes = 0;
  if (rows >= 0 && !__builtin_add_overflow(total, rows, &total) &&
      !__builtin_mul_overflow(total, rowBytes, &bytes)) {
    return true;
  }
  status_ = Status::internal("a rank told " + std::to_string(rows) + " rows, which cannot be");
  return false;
}

bool Execution::hasRoom(int member, std::int64_t room, std::int64_t needed) {
  if (needed > room) tooSmall_ = TooSmall{member, room, needed};
  return needed <= room;
}

void Execution::countElements() {
  const std::int64_t rowElements = entries_.front()->agreed->rowElements();
  for (std::size_t i = 0; i < sizes_.size(); ++i) counts_[i] = sizes_[i] * rowElements;
}

bool Execution::takeRows(std::int64_t rowBytes) {
  sizes_.resize(counts_.size());
  rows_ = 0;
  for (std::size_t i = 0; i < sizes_.size(); ++i) {
    sizes_[i] = gathered_[2 * i + 1];
    if (!addRows(sizes_[i], rowBytes, rows_)) return false;
  }
  // As much of the input is read.
  if (sizes_[static_cast<std::size_t>(communicator_.member())] != mine_[1]) {
    status_ = Status::internal("the ranks' rows have been garbled");
    return false;
  }
  countElements();
  return true;
}

bool Execution::weighAllgather() {
  const std::int64_t row = rowBytes();
  if (!takeRows(row)) return false;
  for (int i = 0; i < communicator_.size(); ++i) {
    if (!hasRoom(i, gathered_[2 * static_cast<std::size_t>(i)], rows_ * row)) return false;
  }
  return true;
}

collective::OperationPtr Execution::startAllgather() {
  Entry& entry = *entries_.front();
  void* out = nullptr;
  if (!entry.neutral) {
    out = outputFor(entry, rows_);
    entry.outcome.splits = sizes_;
  } else {
    out = scratch(static_cast<std::size_t>(sum(counts_)) * sizeOf(entry.agreed->dtype));
  }
  if (out == nullptr) return nullptr;
  const void* in = nullptr;
  if (!entry.neutral) {
    const int me = communicator_.member();
    in = inputBeside(entry, counts_[static_cast<std::size_t>(me)], out, sum(counts_),
                     placeOf(me, out, counts_, entry.agreed->dtype));
    if (!status_.ok()) return nullptr;
  }
  return communicator_.allgather(in, out, counts_, entry.agreed->dtype);
}

bool Execution::weighGather() {
  const std::int64_t row = rowBytes();
  const int root = entries_.front()->agreed->root;
  return takeRows(row) && hasRoom(root, gathered_[2 * static_cast<std::size_t>(root)], rows_ * row);
}

collective::OperationPtr Execution::startGather() {
  Entry& entry = *entries_.front();
  void* out = nullptr;
  const void* in = entry.request.input;
  if (const int me = communicator_.member(); me == entry.agreed->root) {
    out = outputFor(entry, rows_);
    if (out == nullptr) return nullptr;
    entry.outcome.splits = sizes_;
    in = inputBeside(entry, counts_[static_cast<std::size_t>(me)], out, sum(counts_),
                     placeOf(me, out, counts_, entry.agreed->dtype));
    if (!status_.ok()) return nullptr;
  }
  return communicator_.gather(in, out, counts_, entry.agreed->dtype, entry.agreed->root);
}

collective::OperationPtr Execution::exchangeSplits() {
  const Request& request = entries_.front()->request;
  const auto members = static_cast<std::size_t>(communicator_.size());
  mine_.reserve(members + 1);
  mine_.push_back(room());
  appendSplits(mine_, request.splits, request.meta.rows(), communicator_.size());
  counts_.assign(members, communicator_.size() + 1);
  return exchange();
}

bool Execution::weighAlltoall() {
  const auto members = static_cast<std::size_t>(communicator_.size());
  const std::int64_t row = rowBytes();
  const auto ofMember = [&](std::size_t i) {
    return std::span(gathered_).subspan(i * (members + 1));
  };
  for (std::size_t to = 0; to < members; ++to) {
    std::int64_t total = 0;
    for (std::size_t from = 0; from < members; ++from) {
      if (!addRows(ofMember(from)[1 + to], row, total)) return false;
    }
    if (!hasRoom(static_cast<int>(to), ofMember(to)[0], total * row)) return false;
  }
  const auto me = static_cast<std::size_t>(communicator_.member());
  sizes_.resize(members);
  for (std::size_t from = 0; from < members; ++from) sizes_[from] = ofMember(from)[1 + me];
  rows_ = sum(sizes_);
  countElements();
  return true;
}

collective::OperationPtr Execution::startAlltoall() {
  Entry& entry = *entries_.front();
  const std::int64_t row = rowBytes();
  std::int64_t sent = 0;
  std::vector<std::int64_t> sendCounts(mine_.begin() + 1, mine_.end());
  for (const auto each : sendCounts) {
    if (!addRows(each, row, sent)) return nullptr;
  }
  const std::int64_t rowElements = entry.agreed->rowElements();
  for (auto& each : sendCounts) each *= rowElements;
  void* out = outputFor(entry, rows_);
  if (out == nullptr) return nullptr;
  entry.outcome.splits = sizes_;
  const void* in = inputBeside(entry, sum(sendCounts), out, sum(counts_), nullptr);
  if (!status_.ok()) return nullptr;
  return communicator_.alltoall(in, sendCounts, out, counts_, entry.agreed->dtype);
}

collective::OperationPtr Execution::exchangeRootsSplits() {
  Entry& entry = *entries_.front();
  const auto members = static_cast<std::size_t>(communicator_.size());
  mine_ = {room()};
  if (communicator_.member() == entry.agreed->root) {
    appendSplits(mine_, entry.request.splits, entry.agreed->rows(), communicator_.size());
  }
  counts_.assign(members, 1);
  counts_[static_cast<std::size_t>(entry.agreed->root)] += communicator_.size();
  return exchange();
}

bool Execution::weighScatter() {
  const auto members = static_cast<std::size_t>(communicator_.size());
  const int root = entries_.front()->agreed->root;
  const auto at = static_cast<std::size_t>(root);
  // The root's splits lie behind its room; the root itself reads its input by its own.
  const std::span splits = communicator_.member() == root
                               ? std::span(mine_).subspan(1, members)
                               : std::span(gathered_).subspan(at + 1, members);
  sizes_.assign(splits.begin(), splits.end());
  const std::int64_t row = rowBytes();
  rows_ = 0;
  for (const auto each : sizes_) {
    if (!addRows(each, row, rows_)) return false;
  }
  for (std::size_t i = 0; i < members; ++i) {
    const std::int64_t room = gathered_[i <= at ? i : i + members];
    if (!hasRoom(static_cast<int>(i), room, sizes_[i] * row)) return false;
  }
  countElements();
  return true;
}

collective::OperationPtr Execution::startScatter() {
  Entry& entry = *entries_.front();
  const int me = communicator_.member();
  const auto mine = static_cast<std::size_t>(me);
  void* out = outputFor(entry, sizes_[mine]);
  if (out == nullptr) return nullptr;
  const void* in = entry.request.input;
  if (me == entry.agreed->root && out != placeOf(me, in, counts_, entry.agreed->dtype)) {
    in = inputBeside(entry, sum(counts_), out, counts_[mine], nullptr);
    if (!status_.ok()) return nullptr;
  }
  return communicator_.scatter(in, out, counts_, entry.agreed->dtype, entry.agreed->root);
}

}  // namespace farandole::conductor
