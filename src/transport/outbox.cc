#include "transport/outbox.h"

#include <algorithm>
#include <utility>

namespace farandole::transport {
namespace {

Status sizeNotPosted(std::uint64_t slot, std::uint64_t sent, std::uint64_t expected) {
  return Status(Code::kMismatch, "slot " + std::to_string(slot) + ": " + std::to_string(sent) +
                                     " bytes are sent, but " + std::to_string(expected) +
                                     " are expected there");
}

}  // namespace

void Outbox::open(std::uint64_t window) {
  credit_ = window_ = window;
  // So far everything was offered, for want of credit: once more, in the same order.
  const std::deque<Item> offers = std::exchange(ready_, {});
  std::unordered_map<std::uint64_t, Slot> slots = std::exchange(slots_, {});
  offers_ = 0;
  for (const Item& offer : offers) {
    std::deque<SendOperation>& waiting = slots[offer.operation.slot].waiting;
    // Cannot fail: it was taken once, and there is more room now.
    [[maybe_unused]] const Status taken = send(waiting.front());
    waiting.pop_front();
  }
}

Status Outbox::send(SendOperation& operation) {
  const std::uint64_t bytes = operation.bytes.size();
  if (bytes > kMaxMessage) return Status::invalid("a message of more than 2^48 bytes");
  const auto found = slots_.find(operation.slot);
  const bool othersWait = found != slots_.end() && !found->second.waiting.empty();
  if (!othersWait && found != slots_.end() && !found->second.posted.empty()) {
    const std::uint64_t expected = found->second.posted.front();
    if (expected != bytes) return sizeNotPosted(operation.slot, bytes, expected);
    found->second.posted.pop_front();
    --announced_;
    if (found->second.posted.empty()) slots_.erase(found);
    ready_.push_back({Kind::kAsked, std::move(operation), 0});
    return {};
  }
  const std::uint64_t cost = bytes + kMessageOverhead;
  if (!othersWait && bytes <= kEagerBytes && credit_ >= cost) {
    credit_ -= cost;
    ready_.push_back({Kind::kUnasked, std::move(operation), 0});
    return {};
  }
  if (offers_ >= kMaxOffers) {
    return Status::unavailable("more than " + std::to_string(kMaxOffers) +
                               " messages wait for their receives");
  }
  ++offers_;
  ready_.push_back({Kind::kOffer, {operation.slot, operation.bytes, nullptr, operation.id}, 0});
  slots_[operation.slot].waiting.push_back(std::move(operation));
  return {};
}

std::optional<LinkCallback> Outbox::cancel(std::uint64_t slot, std::uint64_t id) {
  const auto ofSlot = [slot](const Item& item) { return item.operation.slot == slot; };
  const auto last = std::find_if(ready_.rbegin(), ready_.rend(), ofSlot);
  if (last == ready_.rend() || last->operation.id != id || last->offset > 0) return std::nullopt;
  const auto entry = slots_.find(slot);
  const bool waits = entry != slots_.end() && !entry->second.waiting.empty();
  LinkCallback done;
  if (last->kind == Kind::kOffer) {
    if (!waits || entry->second.waiting.back().id != id) return std::nullopt;
    done = std::move(entry->second.waiting.back().done);
    entry->second.waiting.pop_back();
    --offers_;
    if (entry->second.waiting.empty()) slots_.erase(entry);
  } else {
    if (waits) return std::nullopt;
    done = std::move(last->operation.done);
    const std::uint64_t bytes = last->operation.bytes.size();
    if (last->kind == Kind::kUnasked) {
      credit_ += bytes + kMessageOverhead;
    } else {
      slots_[slot].posted.push_front(bytes);
      ++announced_;
    }
  }
  ready_.erase(std::next(last).base());
  return done;
}

Status Outbox::control(std::string bytes, FrameType type) {
  if (bytes.size() > kMaxControl) {
    return Status::invalid("a control message has at most " + std::to_string(kMaxControl) +
                           " bytes, not " + std::to_string(bytes.size()));
  }
  if (controlBytes_ + bytes.size() > kMaxControlQueue || control_.size() > kMaxOffers) {
    return Status::unavailable("it does not take the control messages that wait for it");
  }
  controlBytes_ += bytes.size();
  control_.push_back({type, std::move(bytes)});
  return {};
}

void Outbox::notice(FrameType type, std::uint64_t slot, std::uint64_t total) {
  FrameHeader frame = header(type);
  frame.slot = slot;
  frame.total = total;
  notices_.push_back(frame);
}

std::vector<LinkCallback> Outbox::goodbye() {
  leaving_ = true;
  return dropData();
}

Status Outbox::posted(std::uint64_t slot, std::uint64_t total) {
  Slot& entry = slots_[slot];
  if (entry.waiting.empty()) {
    if (announced_ >= kMaxOffers) {
      return Status(Code::kMismatch, "it announced more receives than are allowed");
    }
    ++announced_;
    entry.posted.push_back(total);
    return {};
  }
  SendOperation operation = std::move(entry.waiting.front());
  entry.waiting.pop_front();
  --offers_;
  if (entry.waiting.empty()) slots_.erase(slot);
  const std::uint64_t bytes = operation.bytes.size();
  ready_.push_back({Kind::kAsked, std::move(operation), 0});
  // Kept in line, so that it is failed together with all the others.
  return bytes == total ? Status() : sizeNotPosted(slot, bytes, total);
}

Status Outbox::credit(std::uint64_t bytes) {
  if (bytes > window_ - credit_) {
    return Status(Code::kMismatch, "it returned more credit than it had given");
  }
  credit_ += bytes;
  return {};
}

std::optional<OutFrame> Outbox::next() {
  if (!notices_.empty()) {
    OutFrame frame{notices_.front(), {}, {}, nullptr};
    notices_.pop_front();
    return frame;
  }
  if (!control_.empty()) {
    Message& message = control_.front();
    OutFrame frame{header(message.type), {}, std::move(message.bytes), nullptr};
    control_.pop_front();
    controlBytes_ -= frame.control.size();
    frame.header.length = static_cast<std::uint32_t>(frame.control.size());
    return frame;
  }
  if (leaving_) {
    leaving_ = false;
    return OutFrame{header(FrameType::kGoodbye), {}, {}, nullptr};
  }
  if (ready_.empty()) return std::nullopt;
  return nextPiece();
}

OutFrame Outbox::nextPiece() {
  Item& item = ready_.front();
  const std::span<const std::uint8_t> bytes = item.operation.bytes;
  OutFrame frame{
      header(item.kind == Kind::kOffer ? FrameType::kOffer : FrameType::kData), {}, {}, nullptr};
  frame.header.slot = item.operation.slot;
  frame.header.total = bytes.size();
  if (item.kind != Kind::kOffer) {
    const std::size_t length = std::min<std::size_t>(bytes.size() - item.offset, kMaxFragment);
    frame.header.offset = item.offset;
    frame.header.length = static_cast<std::uint32_t>(length);
    frame.payload = bytes.subspan(item.offset, length);
    item.offset += length;
    if (item.offset < bytes.size()) return frame;
    frame.done = std::move(item.operation.done);
  }
  ready_.pop_front();
  return frame;
}

std::size_t Outbox::pendingBytes(std::size_t limit) const {
  std::size_t total = notices_.size() * kFrameHeaderBytes + controlBytes_;
  for (const Item& item : ready_) {
    if (total >= limit) break;
    total += kFrameHeaderBytes +
             (item.kind == Kind::kOffer ? 0 : item.operation.bytes.size() - item.offset);
  }
  return total;
}

std::vector<LinkCallback> Outbox::dropData() {
  std::vector<LinkCallback> left;
  for (Item& item : ready_) {
    if (item.operation.done) left.push_back(std::move(item.operation.done));
  }
  for (auto& [slot, entry] : slots_) {
    for (SendOperation& operation : entry.waiting) left.push_back(std::move(operation.done));
  }
  ready_.clear();
  slots_.clear();
  notices_.clear();
  return left;
}

std::vector<LinkCallback> Outbox::abandon() {
  control_.clear();
  controlBytes_ = 0;
  leaving_ = false;
  return dropData();
}

}  // namespace farandole::transport
