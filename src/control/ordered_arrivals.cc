#include "control/ordered_arrivals.h"

#include <algorithm>
#include <utility>

namespace farandole::control {
namespace {

// No member gets there; beyond it numbers could come round.
constexpr std::uint64_t kMostOperations = 1ULL << 62;
// Records whose memory is kept for the next ones, per member.
constexpr std::size_t kSpare = 2;

}  // namespace

OrderedArrivals::OrderedArrivals(int members, int me, Limits limits)
    : me_(me), limits_(limits), members_(static_cast<std::size_t>(members)) {}

bool OrderedArrivals::breaksProtocol(const Member& from,
                                     const std::optional<OrderedRecord>& record) const {
  if (!record || from.left || record->number > kMostOperations) return true;
  if (!record->leaves && !record->byName && record->number < from.next) return true;
  // A member is one window ahead of this one, which may be one ahead of the slowest.
  return record->payload.size() > limits_.mostPayload || from.records.size() > 2 * limits_.window ||
         from.byName.size() > 2 * limits_.window * members_.size();
}

void OrderedArrivals::receive(int member, RawBytes& message) {
  const MutexLock lock(mutex_);
  Member& from = members_[static_cast<std::size_t>(member)];
  const auto record = recordIn(message);
  if (breaksProtocol(from, record)) {
    from.offends = true;
    trouble_ = true;
  } else if (record->leaves) {
    from.left = true;
    trouble_ = true;
  } else if (record->byName) {
    from.byName.insert_or_assign(record->number, std::move(message));
  } else {
    from.next = record->number + 1;
    from.records.push_back({record->number, std::move(message)});
    if (!spare_.empty()) {
      message = std::move(spare_.back());
      spare_.pop_back();
    }
  }
}

int OrderedArrivals::offender() const {
  const MutexLock lock(mutex_);
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (members_[i].offends) return static_cast<int>(i);
  }
  return -1;
}

int OrderedArrivals::leftWithout(std::uint64_t number) const {
  const MutexLock lock(mutex_);
  for (int i = 0; i < static_cast<int>(members_.size()); ++i) {
    if (members_[static_cast<std::size_t>(i)].left && lacks(i, number)) return i;
  }
  return -1;
}

std::vector<int> OrderedArrivals::missing(std::uint64_t number) const {
  const MutexLock lock(mutex_);
  std::vector<int> missing;
  for (int i = 0; i < static_cast<int>(members_.size()); ++i) {
    if (lacks(i, number)) missing.push_back(i);
  }
  return missing;
}

bool OrderedArrivals::lacks(int member, std::uint64_t number) const {
  if (member == me_) return false;
  const Member& of = members_[static_cast<std::size_t>(member)];
  const bool here = !of.records.empty() && of.records.front().number == number;
  return !here && !of.byName.contains(number);
}

void OrderedArrivals::moveRecords(std::uint64_t number, std::vector<RawBytes>& taken) {
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (static_cast<int>(i) == me_) continue;
    Member& member = members_[i];
    if (spare_.size() < kSpare * members_.size()) spare_.push_back(std::move(taken[i]));
    if (!member.records.empty() && member.records.front().number == number) {
      taken[i] = std::move(member.records.front().message);
      member.records.pop_front();
    } else {
      taken[i] = std::move(member.byName.extract(number).mapped());
    }
  }
}

bool OrderedArrivals::take(std::uint64_t number, std::vector<RawBytes>& taken) {
  const MutexLock lock(mutex_);
  for (int i = 0; i < static_cast<int>(members_.size()); ++i) {
    if (lacks(i, number)) return false;
  }
  moveRecords(number, taken);
  return true;
}

bool OrderedArrivals::takeUsual(std::uint64_t number, std::vector<RawBytes>& taken, bool& more) {
  const MutexLock lock(mutex_);
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const Member& member = members_[i];
    if (static_cast<int>(i) != me_ &&
        (member.records.empty() || member.records.front().number != number ||
         !member.byName.empty())) {
      return false;
    }
  }
  moveRecords(number, taken);
  more = std::any_of(members_.begin(), members_.end(),
                     [](const Member& member) { return !member.records.empty(); });
  return true;
}

std::optional<std::uint64_t> OrderedArrivals::earliest(std::uint64_t limit, std::uint64_t oldest) {
  const MutexLock lock(mutex_);
  std::optional<std::uint64_t> earliest;
  for (auto& member : members_) {
    if (!member.byName.empty()) {
      member.byName.erase(member.byName.begin(), member.byName.lower_bound(oldest));
    }
    if (member.records.empty()) continue;
    const std::uint64_t number = member.records.front().number;
    if (number < earliest.value_or(limit)) earliest = number;
  }
  return earliest;
}

void OrderedArrivals::drop(std::uint64_t number) {
  const MutexLock lock(mutex_);
  for (auto& member : members_) {
    if (!member.records.empty() && member.records.front().number == number) {
      member.records.pop_front();
    }
  }
}

}  // namespace farandole::control
