// OrderedLane, the part for operations that are small on some members only.
#include <algorithm>
#include <utility>

#include "conductor/ordered_agreement.h"
#include "conductor/ordered_lane.h"

namespace farandole {
namespace {

// Names are used again and again, so that nameless operations have plans too.
constexpr std::uint64_t kNames = 1024;

}  // namespace

void OrderedLane::pass(const EntryPtr& entry) {
  const std::lock_guard lock(order_);
  Request& request = entry->request;
  const std::uint64_t number = next_++;
  entry->aside = number;
  const bool nameless = request.name.empty();
  // By the common count, not by that of the operations which went this way here: members stay in
  // step after they have disagreed.
  if (nameless) {
    request.name = "ordered operation " + std::to_string(number % kNames + 1);
  }
  passes_.emplace(number, Pass{entry, nameless});
  stirred_.store(true, std::memory_order_release);
}

void OrderedLane::passed(const Entry& entry) {
  const std::lock_guard lock(order_);
  passes_.erase(*entry.aside);
  stirred_.store(true, std::memory_order_release);
}

void OrderedLane::withdrawn(const Entry& entry) {
  const std::lock_guard lock(order_);
  const auto found = passes_.find(*entry.aside);
  if (found == passes_.end()) return;
  found->second.state = Pass::kWithdrawn;
  sendAside(found->first, encodeOrderedHead(found->second.nameless ? "" : entry.request.name,
                                            entry.request.meta));
  stirred_.store(true, std::memory_order_release);
}

bool OrderedLane::holds(const std::string& name, std::uint64_t before) const {
  if (!busy()) return false;
  const std::lock_guard lock(order_);
  for (const auto& flight : flights_) {
    if (flight.number < before && flight.entry->request.name == name) return true;
  }
  return false;
}

void OrderedLane::sendAside(std::uint64_t number, std::span<const std::byte> head) {
  if (leaving_) return;
  std::string front = encodeOrdered({false, number, head, {}, true}, options_.room);
  for (int to = 0; to < size(); ++to) {
    if (to != options_.me) options_.send(to, front, {});
  }
}

std::optional<std::uint64_t> OrderedLane::earliestRecord(std::uint64_t below) const {
  std::optional<std::uint64_t> earliest;
  for (const auto& member : members_) {
    if (member.records.empty()) continue;
    const std::uint64_t number = member.records.front().number;
    if (number < earliest.value_or(below)) earliest = number;
  }
  return earliest;
}

bool OrderedLane::settlePasses(std::vector<Finished>& finished) {
  const std::uint64_t limit = flights_.empty() ? next_ : flights_.front().number;
  for (;;) {
    std::optional<std::uint64_t> number;
    {
      const std::lock_guard lock(mutex_);
      // What nobody asks for any more.
      const std::uint64_t oldest =
          passes_.empty() ? limit : std::min(limit, passes_.begin()->first);
      for (auto& member : members_) {
        if (member.asides.empty()) continue;
        member.asides.erase(member.asides.begin(), member.asides.lower_bound(oldest));
      }
      number = earliestRecord(limit);
      if (!number) return true;
      if (!passes_.contains(*number)) {
        for (auto& member : members_) {
          if (!member.records.empty() && member.records.front().number == *number) {
            member.records.pop_front();
          }
        }
      }
    }
    const auto found = passes_.find(*number);
    if (found == passes_.end()) {
      sendAside(*number, {});
      continue;
    }
    Pass& pass = found->second;
    switch (pass.state) {
      case Pass::kUnderWay:
        pass.state = Pass::kContested;
        contested_.push_back(pass.entry);
        return false;
      case Pass::kContested: return false;
      case Pass::kWithdrawn: break;
    }
    if (!takeRecords(*number)) return false;
    finished.push_back(contested(*number, pass));
    passes_.erase(found);
  }
}

OrderedLane::Finished OrderedLane::contested(std::uint64_t number, const Pass& pass) const {
  Finished finished{pass.entry, {}};
  const Request& request = pass.entry->request;
  const auto mine = encodeOrderedHead(pass.nameless ? "" : request.name, request.meta);
  std::vector<OrderedRecord> parts;
  for (std::size_t i = 0; i < taken_.size(); ++i) {
    // They were looked at when they came.
    const auto part = static_cast<int>(i) == options_.me ? std::nullopt : recordIn(taken_[i]);
    parts.push_back(part ? *part : OrderedRecord{false, number, mine, {}, true});
  }
  finished.status = orderedAgreement(number, parts, options_.memberNames, finished.culprit);
  if (finished.status.ok()) {
    finished.status = Status::internal("ranks disagree about what is small: '" + request.name +
                                       "' went different ways");
  }
  return finished;
}

}  // namespace farandole
