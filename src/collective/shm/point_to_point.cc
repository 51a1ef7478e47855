#include "collective/shm/point_to_point.h"

#include <algorithm>
#include <string>

#include "collective/shm/gate.h"

namespace farandole::collective::shm {
namespace {

constexpr std::size_t kMessageBlock = std::size_t{1} << 20;

std::string sizes(std::uint64_t bytes, std::uint64_t capacity) {
  return "a message of " + std::to_string(bytes) + " bytes for a buffer of " +
         std::to_string(capacity);
}

}  // namespace

class PointToPoint::Send final : public ShmOperation {
 public:
  Send(PointToPoint& engine, const void* in, std::size_t bytes, int to, int tag)
      : ShmOperation(engine.context_),
        engine_(engine),
        in_(static_cast<const std::byte*>(in)),
        bytes_(bytes),
        to_(to),
        tag_(tag) {}
  ~Send() override { engine_.forget(*this); }

 protected:
  Advance advance(Budget& budget) override {
    const bool something = engine_.pump(budget);
    if (taken_) return Advance::kDone;
    return something ? Advance::kSomething : Advance::kNothing;
  }

 private:
  friend class PointToPoint;
  using ShmOperation::fail;
  PointToPoint& engine_;
  const std::byte* const in_;
  const std::uint64_t bytes_;
  const int to_;
  const int tag_;
  int envelope_ = -1;  // index, once posted
  std::uint64_t sent_ = 0;
  bool taken_ = false;
};

class PointToPoint::Receive final : public ShmOperation {
 public:
  Receive(PointToPoint& engine, void* out, std::size_t capacity, int from, int tag,
          Received* received)
      : ShmOperation(engine.context_),
        engine_(engine),
        out_(static_cast<std::byte*>(out)),
        capacity_(capacity),
        from_(from),
        tag_(tag),
        received_(received) {}
  ~Receive() override { engine_.forget(*this); }

 protected:
  Advance advance(Budget& budget) override {
    const bool something = engine_.pump(budget);
    if (complete_) return Advance::kDone;
    return something ? Advance::kSomething : Advance::kNothing;
  }

 private:
  friend class PointToPoint;
  using ShmOperation::fail;
  using ShmOperation::failForGood;
  bool matched() const { return envelope_ != nullptr; }
  void complete() {
    complete_ = true;
    if (received_ != nullptr) *received_ = Received{source_, static_cast<std::size_t>(bytes_)};
  }
  PointToPoint& engine_;
  std::byte* const out_;
  const std::uint64_t capacity_;
  const int from_;
  const int tag_;
  Received* const received_;
  // Valid once it is matched.
  int source_ = -1;
  Envelope* envelope_ = nullptr;
  std::uint64_t bytes_ = 0;
  const std::byte* shared_ = nullptr;  // where the message lies, if in the sender's arena
  bool granted_ = false;
  std::uint64_t done_ = 0;
  bool complete_ = false;
};

PointToPoint::PointToPoint(ShmContext& context)
    : context_(context),
      board_(context.board),
      posted_(static_cast<std::size_t>(board_.size())),
      order_(posted_.size()),
      streamHolder_(posted_.size()),
      looks_(posted_.size()) {
  for (auto& owners : posted_) owners.fill(nullptr);
}

PointToPoint::~PointToPoint() = default;

OperationPtr PointToPoint::send(const void* in, std::size_t bytes, int to, int tag) {
  auto operation = std::make_unique<Send>(*this, in, bytes, to, tag);
  sends_.push_back(operation.get());
  return operation;
}

OperationPtr PointToPoint::receive(void* out, std::size_t capacity, int from, int tag,
                                   Received* received) {
  auto operation = std::make_unique<Receive>(*this, out, capacity, from, tag, received);
  receives_.push_back(operation.get());
  ++receivesStarted_;
  return operation;
}

bool PointToPoint::pump(Budget& budget) {
  bool something = false;
  for (auto it = sends_.begin(); it != sends_.end();) {
    Send& send = **it;
    something = pumpSend(send, budget) || something;
    it = send.taken_ || !send.status().ok() ? sends_.erase(it) : std::next(it);
  }
  something = match() || something;
  for (auto it = receives_.begin(); it != receives_.end();) {
    Receive& receive = **it;
    if (receive.matched()) something = pumpReceive(receive, budget) || something;
    it = receive.complete_ || !receive.status().ok() ? receives_.erase(it) : std::next(it);
  }
  for (auto it = drains_.begin(); it != drains_.end();) {
    something = pumpDrain(*it) || something;
    it = it->left == 0 ? drains_.erase(it) : std::next(it);
  }
  return something;
}

// ---- The sender's side.

bool PointToPoint::pumpSend(Send& send, Budget& budget) {
  if (send.envelope_ < 0) return post(send);
  Envelope& envelope = board_.channel(board_.me(), send.to_).envelopes[send.envelope_];
  // Acquire: with the state comes what the receiver wrote before, and its reads are over.
  const std::uint32_t state = envelope.state.load(std::memory_order_acquire);
  if (state == Envelope::kGranted) return streamOut(send, budget);
  if (state != Envelope::kTaken && state != Envelope::kRefused) return false;
  if (state == Envelope::kRefused) {
    send.fail(Status::invalid("member " + std::to_string(send.to_) + " of this set refused " +
                              sizes(send.bytes_, envelope.capacity) + " bytes (tag " +
                              std::to_string(send.tag_) + ")"));
  }
  send.taken_ = state == Envelope::kTaken;
  envelope.state.store(Envelope::kFree, std::memory_order_relaxed);
  posted_[static_cast<std::size_t>(send.to_)][static_cast<std::size_t>(send.envelope_)] = nullptr;
  send.envelope_ = -1;
  return true;
}

bool PointToPoint::post(Send& send) {
  // An earlier message to that member that found no room goes first: equal tags keep their order.
  for (const Send* earlier : sends_) {
    if (earlier == &send) break;
    if (earlier->to_ == send.to_ && earlier->envelope_ < 0 && !earlier->taken_ &&
        earlier->status().ok()) {
      return false;
    }
  }
  const auto to = static_cast<std::size_t>(send.to_);
  Channel& channel = board_.channel(board_.me(), send.to_);
  for (int i = 0; i < Channel::kEnvelopes; ++i) {
    Envelope& envelope = channel.envelopes[i];
    // Acquire: a dropped envelope is freed by the receiver.
    if (posted_[to][static_cast<std::size_t>(i)] != nullptr ||
        envelope.state.load(std::memory_order_acquire) != Envelope::kFree) {
      continue;
    }
    envelope.tag = send.tag_;
    envelope.order = order_[to]++;
    envelope.bytes = send.bytes_;
    const auto range = sharedRange(board_, send.in_, send.bytes_);
    envelope.offset = range && send.bytes_ > 0 ? range->offset : Envelope::kNotShared;
    // Release: who sees it posted sees the fields.
    envelope.state.store(Envelope::kPosted, std::memory_order_release);
    channel.posted.store(order_[to], std::memory_order_release);
    posted_[to][static_cast<std::size_t>(i)] = &send;
    send.envelope_ = i;
    board_.ring(send.to_);
    return true;
  }
  return false;
}

bool PointToPoint::streamOut(Send& send, Budget& budget) {
  Channel& channel = board_.channel(board_.me(), send.to_);
  std::byte* stream = board_.stream(board_.me(), send.to_);
  const std::uint64_t capacity = board_.layout().streamBytes();
  std::uint64_t written = channel.written.load(std::memory_order_relaxed);
  // Acquire: the receiver's reads of the bytes that are overwritten now are over.
  const std::uint64_t used = written - channel.consumed.load(std::memory_order_acquire);
  if (used > capacity) {
    send.failForGood(Status::internal("the stream to member " + std::to_string(send.to_) +
                                      " of this set is out of step"));
    return true;
  }
  const std::uint64_t count = std::min(send.bytes_ - send.sent_, capacity - used);
  const std::uint64_t at = written % capacity;
  const std::uint64_t straight = std::min(count, capacity - at);
  if (count > 0) {
    copy(stream + at, send.in_ + send.sent_, straight, Store::kCached);
    copy(stream, send.in_ + send.sent_ + straight, count - straight, Store::kCached);
    written += count;
    send.sent_ += count;
    budget.charge(count);
    channel.written.store(written, std::memory_order_release);
  }
  if (send.sent_ == send.bytes_) {
    channel.envelopes[send.envelope_].state.store(Envelope::kFree, std::memory_order_release);
    posted_[static_cast<std::size_t>(send.to_)][static_cast<std::size_t>(send.envelope_)] = nullptr;
    send.envelope_ = -1;
    send.taken_ = true;
  }
  if (count > 0) board_.ring(send.to_);
  return count > 0 || send.taken_;
}

void PointToPoint::forget(Send& send) {
  sends_.remove(&send);
  if (send.envelope_ < 0) return;
  const auto index = static_cast<std::size_t>(send.envelope_);
  Envelope& envelope = board_.channel(board_.me(), send.to_).envelopes[index];
  posted_[static_cast<std::size_t>(send.to_)][index] = nullptr;
  std::uint32_t state = Envelope::kPosted;
  if (envelope.state.compare_exchange_strong(state, Envelope::kFree, std::memory_order_acq_rel)) {
    return;
  }
  // Claimed in the meantime, or answered: what the receiver still does with it ends as dropped.
  while (state == Envelope::kClaimed || state == Envelope::kGranted) {
    if (envelope.state.compare_exchange_weak(state, Envelope::kDropped,
                                             std::memory_order_acq_rel)) {
      board_.ring(send.to_);
      return;
    }
  }
  envelope.state.store(Envelope::kFree, std::memory_order_relaxed);
}

// ---- The receiver's side.

bool PointToPoint::match() {
  const bool anyUnmatched = std::any_of(receives_.begin(), receives_.end(),
                                        [](const Receive* r) { return !r->matched(); });
  if (!anyUnmatched) return false;
  bool something = false;
  for (int source = 0; source < board_.size(); ++source) {
    Look& look = looks_[static_cast<std::size_t>(source)];
    const std::uint64_t posted =
        board_.channel(source, board_.me()).posted.load(std::memory_order_acquire);
    if (look.posted == posted && look.receives == receivesStarted_) continue;
    look = {posted, receivesStarted_};
    something = matchFrom(source, posted) || something;
  }
  return something;
}

// Each waiting receive, in order of its start, takes the oldest envelope that fits it. Envelopes
// posted after the count was read do not count: an older one may lie in a place already passed.
bool PointToPoint::matchFrom(int source, std::uint64_t posted) {
  bool something = false;
  Channel& channel = board_.channel(source, board_.me());
  for (Receive* receive : receives_) {
    if (receive->matched() || !receive->status().ok()) continue;
    if (receive->from_ != kAnyMember && receive->from_ != source) continue;
    Envelope* oldest = nullptr;
    for (Envelope& envelope : channel.envelopes) {
      if (envelope.state.load(std::memory_order_acquire) != Envelope::kPosted) continue;
      if (envelope.tag != receive->tag_ || envelope.order >= posted) continue;
      if (oldest == nullptr || envelope.order < oldest->order) oldest = &envelope;
    }
    if (oldest == nullptr) continue;
    std::uint32_t state = Envelope::kPosted;
    // Exchange: the sender may be taking it back at this moment. Then a next look finds the rest.
    if (!oldest->state.compare_exchange_strong(state, Envelope::kClaimed,
                                               std::memory_order_acq_rel)) {
      looks_[static_cast<std::size_t>(source)].receives = 0;
      continue;
    }
    claim(*receive, source, *oldest);
    something = true;
  }
  return something;
}

void PointToPoint::claim(Receive& receive, int source, Envelope& envelope) {
  receive.source_ = source;
  receive.envelope_ = &envelope;
  receive.bytes_ = envelope.bytes;  // read once: checked and used from here
  if (receive.bytes_ > receive.capacity_) {
    receive.fail(Status::invalid("member " + std::to_string(source) + " of this set sent " +
                                 sizes(receive.bytes_, receive.capacity_) + " bytes (tag " +
                                 std::to_string(receive.tag_) + ")"));
    envelope.capacity = receive.capacity_;
    envelope.state.store(Envelope::kRefused, std::memory_order_release);
    board_.ring(source);
    return;
  }
  const std::uint64_t offset = envelope.offset;
  if (offset != Envelope::kNotShared) receive.shared_ = board_.at(source, offset, receive.bytes_);
}

bool PointToPoint::pumpReceive(Receive& receive, Budget& budget) {
  if (!receive.status().ok() || receive.complete_) return false;
  const std::uint32_t state = receive.envelope_->state.load(std::memory_order_acquire);
  if (state == Envelope::kDropped) {
    if (receive.granted_) {
      Channel& channel = board_.channel(receive.source_, board_.me());
      channel.consumed.store(channel.written.load(std::memory_order_acquire),
                             std::memory_order_release);
      streamHolder_[static_cast<std::size_t>(receive.source_)] = nullptr;
    }
    receive.envelope_->state.store(Envelope::kFree, std::memory_order_release);
    receive.fail(Status(Code::kCancelled, "member " + std::to_string(receive.source_) +
                                              " of this set gave up sending (tag " +
                                              std::to_string(receive.tag_) + ")"));
    return true;
  }
  if (receive.shared_ != nullptr) return copyShared(receive, budget);
  if (receive.granted_) return streamIn(receive, budget);
  const void*& holder = streamHolder_[static_cast<std::size_t>(receive.source_)];
  if (holder != nullptr) return false;
  std::uint32_t claimed = Envelope::kClaimed;
  if (!receive.envelope_->state.compare_exchange_strong(claimed, Envelope::kGranted,
                                                        std::memory_order_acq_rel)) {
    return true;  // dropped just now: the next look says so
  }
  holder = &receive;
  receive.granted_ = true;
  board_.ring(receive.source_);
  if (receive.bytes_ == 0) streamIn(receive, budget);
  return true;
}

bool PointToPoint::copyShared(Receive& receive, Budget& budget) {
  while (receive.done_ < receive.bytes_) {
    if (budget.spent()) return true;
    const std::uint64_t count =
        std::min<std::uint64_t>(kMessageBlock, receive.bytes_ - receive.done_);
    copy(receive.out_ + receive.done_, receive.shared_ + receive.done_, count, Store::kCached);
    receive.done_ += count;
    budget.charge(count);
    context_.zeroCopyBytes += count;
  }
  std::uint32_t claimed = Envelope::kClaimed;
  if (receive.envelope_->state.compare_exchange_strong(claimed, Envelope::kTaken,
                                                       std::memory_order_acq_rel)) {
    receive.complete();
    board_.ring(receive.source_);
  }
  return true;
}

std::uint64_t PointToPoint::readable(int source, Status& status) const {
  const Channel& channel = board_.channel(source, board_.me());
  const std::uint64_t there = channel.written.load(std::memory_order_acquire) -
                              channel.consumed.load(std::memory_order_relaxed);
  if (there > board_.layout().streamBytes()) {
    status = Status::internal("the stream from member " + std::to_string(source) +
                              " of this set is out of step");
    return 0;
  }
  return there;
}

bool PointToPoint::streamIn(Receive& receive, Budget& budget) {
  Status status;
  const std::uint64_t count =
      std::min(receive.bytes_ - receive.done_, readable(receive.source_, status));
  if (!status.ok()) {
    receive.failForGood(std::move(status));
    return true;
  }
  if (count > 0) {
    Channel& channel = board_.channel(receive.source_, board_.me());
    const std::byte* stream = board_.stream(receive.source_, board_.me());
    const std::uint64_t capacity = board_.layout().streamBytes();
    const std::uint64_t consumed = channel.consumed.load(std::memory_order_relaxed);
    const std::uint64_t at = consumed % capacity;
    const std::uint64_t straight = std::min(count, capacity - at);
    copy(receive.out_ + receive.done_, stream + at, straight, Store::kCached);
    copy(receive.out_ + receive.done_ + straight, stream, count - straight, Store::kCached);
    // Release: the sender may overwrite them.
    channel.consumed.store(consumed + count, std::memory_order_release);
    receive.done_ += count;
    budget.charge(count);
    board_.ring(receive.source_);
  }
  if (receive.done_ < receive.bytes_) return count > 0;
  streamHolder_[static_cast<std::size_t>(receive.source_)] = nullptr;
  receive.complete();
  return true;
}

bool PointToPoint::pumpDrain(Drain& drain) {
  Status status;
  const bool dropped = drain.envelope->state.load(std::memory_order_acquire) == Envelope::kDropped;
  const std::uint64_t count = std::min(drain.left, readable(drain.source, status));
  Channel& channel = board_.channel(drain.source, board_.me());
  channel.consumed.store(channel.consumed.load(std::memory_order_relaxed) + count,
                         std::memory_order_release);
  drain.left -= count;
  if (dropped || !status.ok()) {
    drain.left = 0;
    if (dropped) drain.envelope->state.store(Envelope::kFree, std::memory_order_release);
  }
  if (drain.left == 0) streamHolder_[static_cast<std::size_t>(drain.source)] = nullptr;
  if (count > 0) board_.ring(drain.source);
  return count > 0;
}

void PointToPoint::forget(Receive& receive) {
  receives_.remove(&receive);
  if (!receive.matched() || receive.complete_ || !receive.status().ok()) return;
  if (receive.granted_) {
    drains_.push_back({receive.source_, receive.envelope_, receive.bytes_ - receive.done_});
    streamHolder_[static_cast<std::size_t>(receive.source_)] = &drains_.back();
    return;
  }
  // It is claimed: no other receive will take it. The sender learns that it was.
  std::uint32_t state = Envelope::kClaimed;
  const bool told = receive.envelope_->state.compare_exchange_strong(state, Envelope::kTaken,
                                                                     std::memory_order_acq_rel);
  if (!told) receive.envelope_->state.store(Envelope::kFree, std::memory_order_release);
  board_.ring(receive.source_);
}

}  // namespace farandole::collective::shm
