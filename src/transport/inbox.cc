#include "transport/inbox.h"

#include <algorithm>
#include <utility>

namespace farandole::transport {
namespace {

Status sizeNotExpected(std::uint64_t slot, std::uint64_t sent, std::uint64_t expected) {
  return Status(Code::kMismatch, "slot " + std::to_string(slot) + ": " + std::to_string(expected) +
                                     " bytes are to be received, but it sends " +
                                     std::to_string(sent));
}

Status brokenMessage(const char* what) {
  return Status(Code::kMismatch, std::string("it sent ") + what);
}

}  // namespace

Result<std::optional<LinkCallback>> Inbox::post(ReceiveOperation& operation) {
  const std::uint64_t bytes = operation.memory.size();
  const std::uint64_t slot = operation.slot;
  if (bytes > kMaxMessage) return Status::invalid("a message of more than 2^48 bytes");
  const auto entry = slots_.try_emplace(slot).first;
  const std::size_t index = entry->second.receives.size();
  const bool arrived = index < entry->second.arrivals.size();
  if (arrived && entry->second.arrivals[index].total != bytes) {
    return sizeNotExpected(slot, entry->second.arrivals[index].total, bytes);
  }
  entry->second.receives.push_back(std::move(operation));
  const bool asked = arrived && entry->second.arrivals[index].offered;
  // Large ones always, so that the sender need not ask; small ones only if it has asked.
  if (bytes > kEagerBytes || asked) outbox_.notice(FrameType::kPosted, slot, bytes);
  if (!arrived || !entry->second.arrivals[index].whole) return std::optional<LinkCallback>();
  const Arrival& arrival = entry->second.arrivals.front();
  std::copy(arrival.buffer.begin(), arrival.buffer.end(),
            entry->second.receives.front().memory.begin());
  return std::optional<LinkCallback>(complete(entry));
}

Status Inbox::offered(std::uint64_t slot, std::uint64_t total) {
  if (offers_ >= kMaxOffers) return brokenMessage("more offers than are allowed");
  ++offers_;
  Slot& entry = slots_[slot];
  entry.arrivals.push_back({total, true, false, false, {}});
  const std::size_t index = entry.arrivals.size() - 1;
  if (index >= entry.receives.size()) {
    fire(slot);
    return {};
  }
  const std::uint64_t expected = entry.receives[index].memory.size();
  if (expected != total) return sizeNotExpected(slot, total, expected);
  if (total <= kEagerBytes) outbox_.notice(FrameType::kPosted, slot, total);
  return {};
}

Status Inbox::startMessage(const FrameHeader& header) {
  if (header.offset != 0) return brokenMessage("the middle of a message without its beginning");
  Slot& entry = slots_[header.slot];
  const auto started = [](const Arrival& arrival) { return arrival.started; };
  const auto first = std::find_if_not(entry.arrivals.begin(), entry.arrivals.end(), started);
  const auto index = static_cast<std::size_t>(first - entry.arrivals.begin());
  const bool posted = index < entry.receives.size();
  if (posted && entry.receives[index].memory.size() != header.total) {
    return sizeNotExpected(header.slot, header.total, entry.receives[index].memory.size());
  }
  if (first != entry.arrivals.end()) {
    if (!posted || first->total != header.total)
      return brokenMessage("a message that it did not offer");
    first->started = true;
    --offers_;
  } else {
    Arrival arrival{header.total, false, true, false, {}};
    if (!posted && header.total > kEagerBytes) return brokenMessage("a large message unasked");
    if (arrival.costsCredit()) {
      const std::uint64_t cost = header.total + kMessageOverhead;
      if (cost > window_ - held_) return brokenMessage("more unasked than it may");
      held_ += cost;
    }
    if (!posted) arrival.buffer.resize(header.total);
    entry.arrivals.push_back(std::move(arrival));
    if (!posted) fire(header.slot);
  }
  current_ = Current{header.slot, header.total, 0, 0};
  return {};
}

Result<std::span<std::uint8_t>> Inbox::begin(const FrameHeader& header) {
  if (!current_) FARANDOLE_RETURN_IF_ERROR(startMessage(header));
  if (header.slot != current_->slot || header.total != current_->total ||
      header.offset != current_->received) {
    return brokenMessage("the fragments of a message in the wrong order");
  }
  current_->fragment = header.length;
  Slot& entry = slots_[header.slot];
  // The message in flight is the last one that was started.
  std::size_t index = entry.arrivals.size();
  while (index > 0 && !entry.arrivals[index - 1].started) --index;
  Arrival& arrival = entry.arrivals[index - 1];
  if (index - 1 < entry.receives.size() && entry.receives[index - 1].cancelled &&
      arrival.buffer.empty()) {
    sink_.resize(std::max<std::size_t>(sink_.size(), header.length));
    return std::span(sink_).first(header.length);
  }
  const std::span<std::uint8_t> whole = arrival.buffer.empty() && index - 1 < entry.receives.size()
                                            ? entry.receives[index - 1].memory
                                            : std::span<std::uint8_t>(arrival.buffer);
  return whole.subspan(header.offset, header.length);
}

std::optional<LinkCallback> Inbox::finish() {
  current_->received += current_->fragment;
  if (current_->received < current_->total) return std::nullopt;
  const auto entry = slots_.find(current_->slot);
  current_.reset();
  std::size_t index = entry->second.arrivals.size();
  while (index > 0 && !entry->second.arrivals[index - 1].started) --index;
  Arrival& arrival = entry->second.arrivals[index - 1];
  arrival.whole = true;
  if (index - 1 >= entry->second.receives.size()) return std::nullopt;
  // Its receive was posted while it was in flight.
  if (!entry->second.receives.front().cancelled) {
    std::copy(arrival.buffer.begin(), arrival.buffer.end(),
              entry->second.receives.front().memory.begin());
  }
  return complete(entry);
}

LinkCallback Inbox::complete(std::unordered_map<std::uint64_t, Slot>::iterator entry) {
  Slot& slot = entry->second;
  if (slot.arrivals.front().costsCredit()) {
    returnCredit(slot.arrivals.front().total + kMessageOverhead);
  }
  LinkCallback done = std::move(slot.receives.front().done);
  slot.receives.pop_front();
  slot.arrivals.pop_front();
  if (slot.receives.empty() && slot.arrivals.empty()) slots_.erase(entry);
  return done;
}

void Inbox::returnCredit(std::uint64_t bytes) {
  owed_ += bytes;
  // Not for every message: a quarter that was not reported yet leaves room for every eager message.
  if (owed_ < window_ / 4) return;
  held_ -= owed_;
  outbox_.notice(FrameType::kCredit, 0, owed_);
  owed_ = 0;
}

std::optional<LinkCallback> Inbox::cancel(std::uint64_t slot, std::uint64_t id) {
  const auto found = slots_.find(slot);
  if (found == slots_.end()) return std::nullopt;
  Slot& entry = found->second;
  for (std::size_t i = 0; i < entry.receives.size(); ++i) {
    ReceiveOperation& operation = entry.receives[i];
    if (operation.id != id || operation.cancelled) continue;
    // A message that came before its receive is still in a buffer of its own.
    const bool begun =
        i < entry.arrivals.size() && entry.arrivals[i].started && entry.arrivals[i].buffer.empty();
    if (begun) return std::nullopt;
    operation.cancelled = true;
    return std::exchange(operation.done, nullptr);
  }
  return std::nullopt;
}

bool Inbox::hasUnclaimed(std::uint64_t slot) const {
  const auto found = slots_.find(slot);
  return found != slots_.end() && found->second.arrivals.size() > found->second.receives.size();
}

void Inbox::watch(std::uint64_t slot, std::uint64_t id, LinkCallback arrived) {
  watches_[slot].emplace_back(id, std::move(arrived));
}

void Inbox::unwatch(std::uint64_t slot, std::uint64_t id) {
  const auto found = watches_.find(slot);
  if (found == watches_.end()) return;
  std::erase_if(found->second, [id](const auto& watch) { return watch.first == id; });
  if (found->second.empty()) watches_.erase(found);
}

void Inbox::fire(std::uint64_t slot) {
  const auto found = watches_.find(slot);
  if (found == watches_.end()) return;
  for (auto& [id, arrived] : found->second) fired_.push_back(std::move(arrived));
  watches_.erase(found);
}

bool Inbox::holdsWhole(std::uint64_t slot) const {
  const auto found = slots_.find(slot);
  return found != slots_.end() && found->second.receives.empty() &&
         !found->second.arrivals.empty() && found->second.arrivals.front().whole;
}

std::vector<LinkCallback> Inbox::abandon() {
  std::vector<LinkCallback> left;
  for (auto& [slot, entry] : slots_) {
    for (ReceiveOperation& operation : entry.receives) {
      if (operation.done) left.push_back(std::move(operation.done));
    }
    entry.receives.clear();
    std::erase_if(entry.arrivals, [](const Arrival& arrival) { return !arrival.whole; });
  }
  for (auto& [slot, watches] : watches_) {
    for (auto& [id, arrived] : watches) left.push_back(std::move(arrived));
  }
  watches_.clear();
  for (LinkCallback& arrived : fired_) left.push_back(std::move(arrived));
  fired_.clear();
  current_.reset();
  return left;
}

}  // namespace farandole::transport
