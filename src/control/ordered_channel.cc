#include "control/ordered_channel.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "control/agreement.h"

namespace farandole::control {
namespace {

// Beside the window: what is sent before the oldest operation is finished.
constexpr std::size_t kBytesAhead = 4 << 20;
// Names are used again and again, so that nameless operations have plans too.
constexpr std::uint64_t kNames = 1024;

}  // namespace

OrderedChannel::OrderedChannel(Options options)
    : options_(std::move(options)),
      arrivals_(size(), options_.me, {options_.room, options_.mostPayload, kWindow}),
      taken_(options_.memberNames.size()),
      data_(options_.memberNames.size()) {}

OrderedChannel::~OrderedChannel() {
  if (options_.detach) options_.detach();
}

void OrderedChannel::submit(const OrderedOperationPtr& operation, std::span<const std::byte> data,
                            std::uint32_t receivers) {
  const MutexLock lock(order_);
  operation->place = next_;
  direct_.push_back(
      {operation,
       encodeOrderedHead(operation->orderedName(), operation->orderedMeta(), std::move(spareHead_)),
       data, receivers, next_++});
  busy_.fetch_add(1, std::memory_order_relaxed);
  sendWhatMay();
  // The others' parts may be here.
  stirred_.store(true, std::memory_order_release);
}

void OrderedChannel::sendWhatMay() {
  // Nothing may follow the last word.
  if (leaving_) return;
  std::size_t ahead = 0;
  for (std::size_t i = 0; i < std::min(direct_.size(), kWindow) && ahead < kBytesAhead; ++i) {
    if (!direct_[i].sent) send(direct_[i]);
    ahead += direct_[i].data.size();
  }
}

void OrderedChannel::send(Direct& direct) {
  direct.sent = true;
  front_ = encodeOrdered({false, direct.place, direct.head, {}}, options_.room, std::move(front_));
  for (int to = 0; to < size(); ++to) {
    if (to == options_.me) continue;
    const bool wanted = (direct.receivers >> to & 1) != 0;
    options_.send(to, front_, wanted ? direct.data : std::span<const std::byte>());
  }
}

void OrderedChannel::receive(int member, RawBytes& message) {
  arrivals_.receive(member, message);
  stirred_.store(true, std::memory_order_release);
  options_.wake();
}

void OrderedChannel::leave() {
  const MutexLock lock(order_);
  if (std::exchange(leaving_, true)) return;
  std::string front = encodeOrdered({true, 0, {}, {}}, options_.room);
  for (int to = 0; to < size(); ++to) {
    if (to != options_.me) options_.send(to, front, {});
  }
}

Status OrderedChannel::broken() const {
  if (!arrivals_.trouble()) return {};
  const int member = arrivals_.offender();
  if (member < 0) return {};
  return Status::internal(nameOf(member) + " sent an ordered operation that makes no sense");
}

bool OrderedChannel::next(Delivery& delivery) {
  // Before anything is looked at: whatever comes from here on stirs again.
  if (!stirred_.exchange(false) && !more_) return false;
  if (arrivals_.trouble() && arrivals_.offender() >= 0) return false;
  {
    const MutexLock lock(order_);
    if (!takeOldest()) {
      const Settled settled = settle(delivery);
      more_ = settled == Settled::kDelivery;
      if (settled != Settled::kNothing) return more_;
      if (direct_.empty() || !direct_.front().sent ||
          !arrivals_.take(direct_.front().place, taken_)) {
        return false;
      }
      more_ = true;
    }
    spareHead_ = std::move(oldest_.head);
    oldest_ = std::move(direct_.front());
    direct_.pop_front();
    sendWhatMay();
    more_ = more_ || !direct_.empty();
  }
  deliverOldest(delivery);
  busy_.fetch_sub(1, std::memory_order_relaxed);
  return true;
}

bool OrderedChannel::takeOldest() {
  return !direct_.empty() && direct_.front().sent &&
         arrivals_.takeUsual(direct_.front().place, taken_, more_);
}

void OrderedChannel::deliverOldest(Delivery& delivery) {
  const std::vector<std::byte>& mine = oldest_.head;
  bool agreed = true;
  for (std::size_t i = 0; i < taken_.size(); ++i) {
    if (static_cast<int>(i) == options_.me) {
      data_[i] = oldest_.data;
      continue;
    }
    // It was looked at when it came.
    const auto record = arrivals_.recordIn(taken_[i]);
    agreed = agreed && record->head.size() == mine.size() &&
             std::memcmp(record->head.data(), mine.data(), mine.size()) == 0;
    data_[i] = record->payload;
  }
  delivery.operation = std::move(oldest_.operation);
  delivery.data = data_;
  delivery.culprit = -1;
  delivery.status =
      agreed ? Status()
             : disagreement(oldest_.place, {false, oldest_.place, mine, {}}, delivery.culprit);
}

Status OrderedChannel::disagreement(std::uint64_t place, const OrderedRecord& mine,
                                    int& culprit) const {
  std::vector<OrderedRecord> records;
  for (std::size_t i = 0; i < taken_.size(); ++i) {
    const auto record =
        static_cast<int>(i) == options_.me ? std::nullopt : arrivals_.recordIn(taken_[i]);
    records.push_back(record ? *record : mine);
  }
  return orderedAgreement(place, records, options_.memberNames, culprit);
}

void OrderedChannel::countByName(const OrderedOperationPtr& operation) {
  const MutexLock lock(order_);
  operation->place = next_;
  operation->byName = true;
  byName_.emplace(next_++, ByName{operation, operation->orderedName().empty()});
  stirred_.store(true, std::memory_order_release);
}

std::string OrderedChannel::nameAt(std::uint64_t place) {
  return "ordered operation " + std::to_string(place % kNames + 1);
}

void OrderedChannel::ended(const OrderedOperation& operation) {
  const MutexLock lock(order_);
  byName_.erase(operation.place);
  stirred_.store(true, std::memory_order_release);
}

void OrderedChannel::retracted(const OrderedOperation& operation) {
  const MutexLock lock(order_);
  const auto found = byName_.find(operation.place);
  if (found == byName_.end()) return;
  found->second.state = ByName::kRetracted;
  sendByName(found->first, encodeOrderedHead(found->second.nameless ? "" : operation.orderedName(),
                                             operation.orderedMeta()));
  stirred_.store(true, std::memory_order_release);
}

void OrderedChannel::sendByName(std::uint64_t place, std::span<const std::byte> head) {
  if (leaving_) return;
  std::string front = encodeOrdered({false, place, head, {}, true}, options_.room);
  for (int to = 0; to < size(); ++to) {
    if (to != options_.me) options_.send(to, front, {});
  }
}

OrderedChannel::Settled OrderedChannel::settle(Delivery& delivery) {
  const std::uint64_t limit = direct_.empty() ? next_ : direct_.front().place;
  for (;;) {
    const std::uint64_t oldest = byName_.empty() ? limit : std::min(limit, byName_.begin()->first);
    const auto place = arrivals_.earliest(limit, oldest);
    if (!place) return Settled::kNothing;
    const auto found = byName_.find(*place);
    if (found == byName_.end()) {
      // This member's operation is already over.
      arrivals_.drop(*place);
      sendByName(*place, {});
      continue;
    }
    ByName& mine = found->second;
    if (mine.state == ByName::kInFlight) {
      mine.state = ByName::kDisputed;
      disputed_.push_back(mine.operation);
    }
    if (mine.state != ByName::kRetracted || !arrivals_.take(*place, taken_)) {
      return Settled::kWaits;
    }
    deliverDisputed(*place, mine, delivery);
    byName_.erase(found);
    return Settled::kDelivery;
  }
}

void OrderedChannel::deliverDisputed(std::uint64_t place, const ByName& mine, Delivery& delivery) {
  const OrderedOperation& operation = *mine.operation;
  const auto head =
      encodeOrderedHead(mine.nameless ? "" : operation.orderedName(), operation.orderedMeta());
  delivery = {mine.operation, {}, -1, {}};
  delivery.status = disagreement(place, {false, place, head, {}, true}, delivery.culprit);
  if (delivery.status.ok()) {
    delivery.status = Status::internal("ranks disagree about what is small: '" +
                                       operation.orderedName() + "' went different ways");
  }
}

bool OrderedChannel::holds(const std::string& name, std::uint64_t before) const {
  if (!busy()) return false;
  const MutexLock lock(order_);
  return std::any_of(direct_.begin(), direct_.end(), [&](const Direct& direct) {
    return direct.place < before && direct.operation->orderedName() == name;
  });
}

int OrderedChannel::lostTo() const {
  if (!arrivals_.trouble() || !busy()) return -1;
  const MutexLock lock(order_);
  return direct_.empty() ? -1 : arrivals_.leftWithout(direct_.front().place);
}

std::optional<OrderedChannel::Stall> OrderedChannel::stall(TimePoint now,
                                                           Duration olderThan) const {
  const MutexLock lock(order_);
  if (direct_.empty()) return std::nullopt;
  const Direct& oldest = direct_.front();
  const Duration age = now - oldest.operation->orderedSince();
  if (age < olderThan) return std::nullopt;
  return Stall{oldest.operation, arrivals_.missing(oldest.place), age};
}

std::vector<OrderedOperationPtr> OrderedChannel::takeAll() {
  const MutexLock lock(order_);
  std::vector<OrderedOperationPtr> operations;
  for (auto& direct : direct_) operations.push_back(std::move(direct.operation));
  direct_.clear();
  // The others that went by their names are where they went.
  for (auto& [place, each] : byName_) {
    if (each.state == ByName::kRetracted) operations.push_back(std::move(each.operation));
  }
  byName_.clear();
  disputed_.clear();
  busy_.store(0, std::memory_order_relaxed);
  return operations;
}

}  // namespace farandole::control
