#include "conductor/ordered_lane.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/reduce.h"
#include "conductor/ordered_agreement.h"
#include "conductor/output.h"

namespace farandole {
namespace {

// What is sent before the oldest operation is over: so many operations, and so many bytes of them.
constexpr std::size_t kAhead = 16;
constexpr std::int64_t kBytesAhead = 4 << 20;
// No member gets there; beyond it numbers could come round.
constexpr std::uint64_t kMostOperations = 1ULL << 62;
constexpr int kMostMembers = 16;
// What a member sends for one operation, to all others together: more is faster with algorithms
// that do not send everything to everybody. Two members do that anyway: 512 KiB take 135 us this
// way and 160 by name, 1 MiB 300 and 315.
constexpr std::int64_t kMostBytesOfTwo = 1 << 20;
constexpr std::int64_t kMostBytes = 64 << 10;
// Records whose memory is kept for the next ones, per member.
constexpr std::size_t kSpare = 2;

// Of one operation's data, among so many members.
std::int64_t mostBytes(int members) {
  return members == 2 ? kMostBytesOfTwo : kMostBytes / std::max(members - 1, 1);
}

// Whether `from` has data that `to` needs.
bool needs(const Meta& meta, int from, int to) {
  switch (meta.kind) {
    case Kind::kAllreduce: return true;
    case Kind::kBroadcast: return from == meta.root;
    case Kind::kReduce: return to == meta.root;
    default: return false;
  }
}

std::span<const std::byte> bytesOf(const void* memory, std::int64_t bytes) {
  return {static_cast<const std::byte*>(memory), static_cast<std::size_t>(bytes)};
}

}  // namespace

OrderedLane::OrderedLane(Options options)
    : options_(std::move(options)),
      members_(options_.memberNames.size()),
      taken_(options_.memberNames.size()),
      parts_(options_.memberNames.size()) {}

OrderedLane::~OrderedLane() {
  if (options_.detach) options_.detach();
}

bool OrderedLane::serves(int members) { return members >= 2 && members <= kMostMembers; }

bool OrderedLane::takes(const Meta& meta, int members) {
  if (!serves(members) || meta.group != 0) return false;
  switch (meta.kind) {
    case Kind::kBarrier: return true;
    case Kind::kAllreduce:
    case Kind::kReduce:
    case Kind::kBroadcast: break;
    default: return false;
  }
  return meta.op != ReduceOp::kAdasum && meta.bytes() <= mostBytes(members);
}

void OrderedLane::submit(const EntryPtr& entry) {
  const std::lock_guard lock(order_);
  const Request& request = entry->request;
  flights_.push_back(
      {entry, encodeOrderedHead(request.name, request.meta, std::move(spareHead_)), next_++});
  entry->number = next_;
  busy_.fetch_add(1, std::memory_order_relaxed);
  sendWhatMay();
  // The others' parts may be here.
  stirred_.store(true, std::memory_order_release);
}

void OrderedLane::sendWhatMay() {
  // Nothing may follow the last word.
  if (leaving_) return;
  std::int64_t ahead = 0;
  for (std::size_t i = 0; i < std::min(flights_.size(), kAhead) && ahead < kBytesAhead; ++i) {
    if (!flights_[i].sent) send(flights_[i]);
    ahead += flights_[i].entry->request.meta.bytes();
  }
}

void OrderedLane::send(Flight& flight) {
  flight.sent = true;
  const Request& request = flight.entry->request;
  const std::span<const std::byte> data = request.meta.kind == Kind::kBarrier
                                              ? std::span<const std::byte>()
                                              : bytesOf(request.input, request.meta.bytes());
  front_ = encodeOrdered({false, flight.number, flight.head, {}}, options_.room, std::move(front_));
  for (int to = 0; to < size(); ++to) {
    if (to == options_.me) continue;
    const bool wanted = needs(request.meta, options_.me, to);
    options_.send(to, front_, wanted ? data : std::span<const std::byte>());
  }
}

void OrderedLane::receive(int member, RawBytes& message) {
  {
    const std::lock_guard lock(mutex_);
    Member& from = members_[static_cast<std::size_t>(member)];
    const auto record = recordIn(message);
    const auto late = [&] { return !record->aside && record->number < from.next; };
    if (!record || from.left || record->number > kMostOperations || (!record->leaves && late()) ||
        record->payload.size() > static_cast<std::size_t>(mostBytes(size())) ||
        from.records.size() > 2 * kAhead || from.asides.size() > 2 * kAhead * kMostMembers) {
      from.corrupt = true;
      trouble_ = true;
    } else if (record->leaves) {
      from.left = true;
      trouble_ = true;
    } else if (record->aside) {
      from.asides.insert_or_assign(record->number, std::move(message));
    } else {
      from.next = record->number + 1;
      from.records.push_back({record->number, std::move(message)});
      if (!spare_.empty()) {
        message = std::move(spare_.back());
        spare_.pop_back();
      }
    }
  }
  stirred_.store(true, std::memory_order_release);
  options_.wake();
}

void OrderedLane::leave() {
  const std::lock_guard lock(order_);
  if (std::exchange(leaving_, true)) return;
  std::string front = encodeOrdered({true, 0, {}, {}}, options_.room);
  for (int to = 0; to < size(); ++to) {
    if (to != options_.me) options_.send(to, front, {});
  }
}

bool OrderedLane::lacksPart(int member, std::uint64_t number) const {
  if (member == options_.me) return false;
  const Member& of = members_[static_cast<std::size_t>(member)];
  const bool here = !of.records.empty() && of.records.front().number == number;
  return !here && !of.asides.contains(number);
}

void OrderedLane::takeParts(std::uint64_t number) {
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (static_cast<int>(i) == options_.me) continue;
    Member& member = members_[i];
    if (spare_.size() < kSpare * members_.size()) spare_.push_back(std::move(taken_[i]));
    if (!member.records.empty() && member.records.front().number == number) {
      taken_[i] = std::move(member.records.front().message);
      member.records.pop_front();
    } else {
      taken_[i] = std::move(member.asides.extract(number).mapped());
    }
  }
}

bool OrderedLane::takeOldest() {
  moreRecords_ = true;
  if (flights_.empty() || !flights_.front().sent) return false;
  const std::uint64_t number = flights_.front().number;
  const auto me = static_cast<std::size_t>(options_.me);
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const Member& member = members_[i];
    if (i != me && (member.records.empty() || member.records.front().number != number ||
                    !member.asides.empty())) {
      return false;
    }
  }
  takeParts(number);
  moreRecords_ = std::any_of(members_.begin(), members_.end(),
                             [](const Member& member) { return !member.records.empty(); });
  return true;
}

bool OrderedLane::takeRecords(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  for (int i = 0; i < size(); ++i) {
    if (lacksPart(i, number)) return false;
  }
  takeParts(number);
  return true;
}

Status OrderedLane::makesNoSense(int member) const {
  return Status::internal(options_.memberNames[static_cast<std::size_t>(member)] +
                          " sent an ordered operation that makes no sense");
}

Status OrderedLane::step(std::vector<Finished>& finished) {
  // First: whatever comes from here on stirs again.
  stirred_.store(false);
  if (trouble_) {
    const std::lock_guard lock(mutex_);
    for (int i = 0; i < size(); ++i) {
      if (members_[static_cast<std::size_t>(i)].corrupt) return makesNoSense(i);
    }
  }
  for (bool more = true; more;) {
    {
      const std::lock_guard lock(order_);
      if (!takeOldest() && (!settlePasses(finished) || flights_.empty() || !flights_.front().sent ||
                            !takeRecords(flights_.front().number))) {
        return {};
      }
      spareHead_ = std::move(oldest_.head);
      oldest_ = std::move(flights_.front());
      flights_.pop_front();
      sendWhatMay();
      more = moreRecords_ || !flights_.empty();
    }
    // Without the lock: it calls the caller's allocator, which may need what a thread that submits
    // holds.
    finished.push_back(finish(oldest_));
    busy_.fetch_sub(1, std::memory_order_relaxed);
  }
  return {};
}

Status OrderedLane::agreement(const Flight& flight, std::span<const OrderedRecord> parts,
                              int& culprit) const {
  if (std::all_of(parts.begin(), parts.end(), [&](const OrderedRecord& part) {
        return part.head.size() == flight.head.size() &&
               std::memcmp(part.head.data(), flight.head.data(), flight.head.size()) == 0;
      })) {
    return {};
  }
  return orderedAgreement(flight.number, parts, options_.memberNames, culprit);
}

OrderedLane::Finished OrderedLane::finish(Flight& flight) {
  Entry& entry = *flight.entry;
  const Meta& meta = entry.request.meta;
  Finished finished{std::move(flight.entry), {}};
  const std::span<OrderedRecord> parts(parts_);
  for (int i = 0; i < size(); ++i) {
    const auto index = static_cast<std::size_t>(i);
    // They were looked at when they came.
    const auto part = i == options_.me ? std::nullopt : recordIn(taken_[index]);
    parts[index] = part ? *part : OrderedRecord{false, flight.number, flight.head, {}};
  }
  finished.status = agreement(flight, parts, finished.culprit);
  if (!finished.status.ok()) return finished;
  const std::int64_t bytes = meta.kind == Kind::kBarrier ? 0 : meta.bytes();
  for (int i = 0; i < size(); ++i) {
    auto& part = parts[static_cast<std::size_t>(i)];
    if (i == options_.me) {
      part.payload = bytesOf(entry.request.input, bytes);
    } else if (part.payload.size() !=
               (needs(meta, i, options_.me) ? static_cast<std::size_t>(bytes) : 0)) {
      finished.status = Status::internal(options_.memberNames[static_cast<std::size_t>(i)] +
                                         " sent data of another size than it said");
      finished.culprit = i;
      return finished;
    }
  }
  const bool receives = meta.kind == Kind::kAllreduce || meta.kind == Kind::kBroadcast ||
                        (meta.kind == Kind::kReduce && meta.root == options_.me);
  if (!receives) return finished;
  auto out = provideOutput(entry, meta.shape);
  if (!out.ok()) {
    finished.status = out.status();
    return finished;
  }
  if (meta.kind == Kind::kBroadcast) {
    const auto& data = parts[static_cast<std::size_t>(meta.root)].payload;
    if (*out != data.data() && bytes > 0) std::memmove(*out, data.data(), data.size());
    return finished;
  }
  if (bytes == 0) return finished;
  std::array<const void*, kMostMembers> payloads;
  for (std::size_t i = 0; i < parts.size(); ++i) payloads[i] = parts[i].payload.data();
  const std::span<const void* const> sources(payloads.data(), parts.size());
  Scale scale{meta.prescale, meta.postscale, 1};
  if (meta.op == ReduceOp::kAverage) scale.divisor = size();
  const FpModeGuard guard;
  void* const destination = *out;
  reduce(std::span(&destination, 1), sources, meta.elements(), meta.dtype,
         meta.op == ReduceOp::kAverage ? ReduceOp::kSum : meta.op, scale, Store::kCached);
  return finished;
}

int OrderedLane::lostTo() const {
  if (!trouble_ || !busy()) return -1;
  const std::lock_guard order(order_);
  if (flights_.empty()) return -1;
  const std::lock_guard lock(mutex_);
  for (int i = 0; i < size(); ++i) {
    const bool left = members_[static_cast<std::size_t>(i)].left;
    if (left && lacksPart(i, flights_.front().number)) return i;
  }
  return -1;
}

std::optional<OrderedLane::Stall> OrderedLane::stall(TimePoint now, Duration olderThan) const {
  const std::lock_guard lock(order_);
  if (flights_.empty()) return std::nullopt;
  const Entry& oldest = *flights_.front().entry;
  if (now - oldest.submitted < olderThan) return std::nullopt;
  const std::lock_guard arrivals(mutex_);
  Stall stall{nameOf(oldest), {}, now - oldest.submitted};
  for (int i = 0; i < size(); ++i) {
    if (lacksPart(i, flights_.front().number)) stall.missing.push_back(i);
  }
  return stall;
}

std::vector<EntryPtr> OrderedLane::takeAll() {
  const std::lock_guard lock(order_);
  std::vector<EntryPtr> entries;
  for (auto& flight : flights_) entries.push_back(std::move(flight.entry));
  flights_.clear();
  // The others that passed are where they went.
  for (auto& [number, each] : passes_) {
    if (each.state == Pass::kWithdrawn) entries.push_back(std::move(each.entry));
  }
  passes_.clear();
  contested_.clear();
  busy_.store(0, std::memory_order_relaxed);
  return entries;
}

}  // namespace farandole
