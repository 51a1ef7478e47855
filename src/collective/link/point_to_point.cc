#include "collective/link/point_to_point.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "base/little_endian.h"

namespace farandole::collective::link {
namespace {

enum Kind : std::uint64_t { kEnvelopes = 0, kPayload = 1, kAnswers = 2 };
constexpr std::size_t kEnvelopeBytes = 24;
constexpr std::size_t kAnswerBytes = 16;
constexpr std::size_t kNoteBytes = 64;  // room for either
constexpr std::size_t kMessagePart = std::size_t{1} << 20;
constexpr std::size_t kMessageWindow = 4;
constexpr std::byte kNothing{};  // an empty message's memory

std::uint64_t slotsOf(const Context& context) { return context.keyBits() | kPointToPoint; }
std::uint64_t step(Kind kind, std::uint64_t number) {
  return std::uint64_t{kind} << kKindShift | number % kMessageNumbers;
}
std::uint8_t* octets(std::byte* memory) { return reinterpret_cast<std::uint8_t*>(memory); }

std::string sizes(std::uint64_t bytes, std::uint64_t capacity, int tag) {
  return std::to_string(bytes) + " bytes for a receive of at most " + std::to_string(capacity) +
         " bytes (tag " + std::to_string(tag) + ")";
}

// Bytes that follow their envelope at once are one message; the others come in parts.
std::size_t partBytes(std::uint64_t bytes) {
  return bytes <= kEagerSend ? kEagerSend : kMessagePart;
}

// Envelopes of one member that may wait for receives; then it is no longer listened to.
constexpr std::size_t kMaxWaiting = 65536;
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 48;

}  // namespace

// Counters: 0 the answer, 1 the envelope, from 2 on the bytes.
class PointToPoint::Send final : public LinkOperation {
 public:
  Send(PointToPoint& parent, const void* in, std::size_t bytes, int to, int tag)
      : LinkOperation(parent.context_, 2 + kMessageWindow, slotsOf(parent.context_)),
        parent_(parent),
        in_(static_cast<const std::byte*>(in)),
        bytes_(bytes),
        to_(to),
        tag_(tag),
        eager_(bytes <= kEagerSend) {
    // What follows its envelope at once is copied, and needs no other member.
    mayBeDropped(eager_ || to == me());
  }
  ~Send() override {
    if (!local_) return;
    local_->memory = nullptr;
    std::erase_if(parent_.unmatched_, [this](const Envelope& e) { return e.local == local_; });
  }

  // At once, so that messages are in the order of their start.
  void begin() {
    if (!context().failure.ok()) return;
    number_ = parent_.peer(to_).sent++;
    if (to_ == me()) {
      local_ = std::make_shared<Local>(Local{in_ == nullptr ? &kNothing : in_, false, false, 0});
      parent_.unmatched_.push_back({to_, number_, bytes_, tag_, local_});
      return;
    }
    if (!traffic().reserve(kNoteBytes + (eager_ ? bytes_ : 0), true)) {
      return failForGood(Status::outOfMemory("no memory for a message"));
    }
    std::byte* const note = traffic().scratch();
    store<std::uint64_t>(octets(note), number_);
    store<std::uint64_t>(octets(note) + 8, bytes_);
    store<std::uint64_t>(octets(note) + 16, static_cast<std::uint64_t>(tag_));
    traffic().receive(to_, step(kAnswers, number_), std::span(answer(), kAnswerBytes), 0);
    traffic().send(to_, step(kEnvelopes, 0), std::span(note, kEnvelopeBytes), 1);
    if (!eager_ || bytes_ == 0) return;
    std::memcpy(note + kNoteBytes, in_, bytes_);
    traffic().send(to_, step(kPayload, number_), std::span(note + kNoteBytes, bytes_), 2);
  }

 protected:
  Advance advance(Budget&) override {
    if (to_ == me()) {
      const bool something = parent_.pump();
      if (local_->taken) return Advance::kDone;
      if (local_->refused) refused(local_->capacity);
      return something ? Advance::kSomething : Advance::kNothing;
    }
    if (!traffic().clear(0)) return Advance::kNothing;
    if (!answered_ && !takeAnswer()) return Advance::kSomething;
    bool something = false;
    while (!eager_ && sent_ < bytes_) {
      const std::size_t counter = 2 + sent_ / kMessagePart % kMessageWindow;
      if (!traffic().clear(counter)) break;
      const std::size_t part = std::min(kMessagePart, bytes_ - sent_);
      traffic().send(to_, step(kPayload, number_), std::span(in_ + sent_, part), counter);
      sent_ += part;
      something = true;
    }
    bool through = eager_ || sent_ == bytes_;
    for (std::size_t i = 1; i < 2 + kMessageWindow; ++i) through = through && traffic().clear(i);
    if (through) return Advance::kDone;
    return something ? Advance::kSomething : Advance::kNothing;
  }

 private:
  std::byte* answer() const { return traffic().scratch() + kEnvelopeBytes; }
  void refused(std::uint64_t capacity) {
    fail(Status::invalid(context().nameOf(to_) + " refused " + sizes(bytes_, capacity, tag_)));
  }

  bool takeAnswer() {
    answered_ = true;
    const auto verdict = load<std::uint64_t>(octets(answer()));
    const auto capacity = load<std::uint64_t>(octets(answer()) + 8);
    if (verdict == 1) return true;
    refused(capacity);
    return false;
  }

  PointToPoint& parent_;
  const std::byte* const in_;
  const std::size_t bytes_;
  const int to_;
  const int tag_;
  const bool eager_;
  std::uint64_t number_ = 0;
  bool answered_ = false;
  std::shared_ptr<Local> local_;
  std::size_t sent_ = 0;
};

// Counters: 0 the answer, from 1 on the bytes.
class PointToPoint::Receive final : public LinkOperation {
 public:
  Receive(PointToPoint& parent, void* out, std::size_t capacity, int from, int tag,
          Received* received)
      : LinkOperation(parent.context_, 1 + kMessageWindow, slotsOf(parent.context_)),
        parent_(parent),
        out_(static_cast<std::byte*>(out)),
        capacity_(capacity),
        from_(from),
        tag_(tag),
        received_(received) {
    mayBeDropped(true);
  }
  ~Receive() override {
    parent_.receives_.remove(this);
    if (envelope_.local && !envelope_.local->refused) answerLocal(true);
  }

  int from() const { return from_; }
  bool fits(const Envelope& envelope) const {
    return envelope.tag == tag_ && (from_ == kAnyMember || from_ == envelope.source);
  }

  void matched(const Envelope& envelope) {
    envelope_ = envelope;
    mayBeDropped(envelope.local != nullptr);
    const bool small = envelope.bytes <= kEagerSend;
    const bool refuses = envelope.bytes > capacity_;
    if (refuses) {
      fail(Status::invalid(context().nameOf(envelope.source) + " sent " +
                           sizes(envelope.bytes, capacity_, tag_)));
    }
    if (envelope.local != nullptr) {
      if (refuses) answerLocal(false);
      return;
    }
    const bool wasted = refuses && small;
    if (!traffic().reserve(kNoteBytes + (wasted ? envelope.bytes : 0), true)) {
      return failForGood(Status::outOfMemory("no memory for a message"));
    }
    // Bytes that were refused arrive nevertheless.
    if (wasted && envelope.bytes > 0) {
      traffic().receive(envelope.source, step(kPayload, envelope.number),
                        std::span(traffic().scratch() + kNoteBytes, envelope.bytes), 1);
    }
    if (!refuses) postParts();
    if (refuses || !small) answer(!refuses);
  }

 protected:
  Advance advance(Budget& budget) override {
    bool something = parent_.pump();
    if (!status().ok()) return Advance::kSomething;
    if (envelope_.source < 0) {
      if (Status why = parent_.hopeless(from_); !why.ok()) failForGood(std::move(why));
      return something ? Advance::kSomething : Advance::kNothing;
    }
    if (envelope_.local != nullptr) return copyLocal(budget);
    something = postParts() || something;
    bool through = posted_ == envelope_.bytes;
    for (std::size_t i = 1; i < 1 + kMessageWindow; ++i) through = through && traffic().clear(i);
    if (!through) return something ? Advance::kSomething : Advance::kNothing;
    if (!answered_) answer(true);
    return complete();
  }

 private:
  bool postParts() {
    bool something = false;
    const std::size_t part = partBytes(envelope_.bytes);
    while (posted_ < envelope_.bytes) {
      const std::size_t counter = 1 + posted_ / part % kMessageWindow;
      if (!traffic().clear(counter)) break;
      const std::size_t bytes = std::min<std::size_t>(part, envelope_.bytes - posted_);
      traffic().receive(envelope_.source, step(kPayload, envelope_.number),
                        std::span(out_ + posted_, bytes), counter);
      posted_ += bytes;
      something = true;
    }
    return something;
  }

  void answer(bool takes) {
    answered_ = true;
    std::byte* const note = traffic().scratch();
    store<std::uint64_t>(octets(note), takes ? 1 : 0);
    store<std::uint64_t>(octets(note) + 8, capacity_);
    traffic().send(envelope_.source, step(kAnswers, envelope_.number),
                   std::span(note, kAnswerBytes), 0);
  }

  void answerLocal(bool takes) {
    envelope_.local->taken = takes;
    envelope_.local->refused = !takes;
    envelope_.local->capacity = capacity_;
    context().bell->ring();
  }

  Advance copyLocal(Budget& budget) {
    if (envelope_.local->memory == nullptr) {
      fail(Status(Code::kCancelled,
                  "this rank gave up sending to itself (tag " + std::to_string(tag_) + ")"));
      return Advance::kSomething;
    }
    while (posted_ < envelope_.bytes) {
      if (budget.spent()) return Advance::kSomething;
      const std::size_t bytes = std::min<std::size_t>(kMessagePart, envelope_.bytes - posted_);
      copy(out_ + posted_, envelope_.local->memory + posted_, bytes, Store::kCached);
      posted_ += bytes;
      budget.charge(2 * bytes);
    }
    answerLocal(true);
    return complete();
  }

  Advance complete() {
    if (received_ != nullptr) *received_ = {envelope_.source, envelope_.bytes};
    return Advance::kDone;
  }

  PointToPoint& parent_;
  std::byte* const out_;
  const std::size_t capacity_;
  const int from_;
  const int tag_;
  Received* const received_;
  Envelope envelope_;  // without a source: not matched
  std::size_t posted_ = 0;
  bool answered_ = false;
};

PointToPoint::PointToPoint(Context& context)
    : context_(context), peers_(static_cast<std::size_t>(context.size())) {}

PointToPoint::~PointToPoint() = default;

OperationPtr PointToPoint::send(const void* in, std::size_t bytes, int to, int tag) {
  auto operation = std::make_unique<Send>(*this, in, bytes, to, tag);
  operation->begin();
  return operation;
}

OperationPtr PointToPoint::receive(void* out, std::size_t capacity, int from, int tag,
                                   Received* received) {
  auto operation = std::make_unique<Receive>(*this, out, capacity, from, tag, received);
  receives_.push_back(operation.get());
  if (!context_.failure.ok()) return operation;
  for (int member = 0; member < context_.size(); ++member) {
    if (from == kAnyMember || from == member) listen(member);
  }
  return operation;
}

void PointToPoint::listen(int member) {
  Peer& entry = peer(member);
  if (member == context_.me() || entry.mail) return;
  entry.mail = std::make_shared<Traffic>(context_, slotsOf(context_), 1);
  if (!entry.mail->reserve(kEnvelopeBytes, true)) {
    entry.end = Status::outOfMemory("no memory for a message");
    return;
  }
  postEnvelope(member);
}

void PointToPoint::postEnvelope(int member) {
  Peer& entry = peer(member);
  entry.posted = true;
  entry.mail->receive(member, step(kEnvelopes, 0), std::span(entry.mail->scratch(), kEnvelopeBytes),
                      0);
}

Result<PointToPoint::Envelope> PointToPoint::decode(int member) {
  const std::uint8_t* note = octets(peer(member).mail->scratch());
  Envelope envelope{member, load<std::uint64_t>(note), load<std::uint64_t>(note + 8), 0, nullptr};
  const auto tag = load<std::uint64_t>(note + 16);
  if (envelope.number != peer(member).arrived || envelope.bytes > kMostBytes || tag > INT32_MAX) {
    return Status(Code::kMismatch, context_.nameOf(member) +
                                       " announced a message that cannot be: it runs another "
                                       "version of this library, or its memory is damaged")
        .withRank(context_.rankOf(member));
  }
  envelope.tag = static_cast<std::int32_t>(tag);
  return envelope;
}

bool PointToPoint::fetch(int member) {
  Peer& entry = peer(member);
  bool something = false;
  while (entry.mail && entry.end.ok()) {
    if (entry.posted) {
      if (entry.mail->failed()) entry.end = entry.mail->failure();
      if (!entry.mail->clear(0)) return something;
      entry.posted = false;
      Result<Envelope> envelope = decode(member);
      if (!envelope.ok()) {
        entry.end = envelope.status();
        return true;
      }
      ++entry.arrived;
      ++entry.waiting;
      unmatched_.push_back(envelope.value());
      something = true;
    }
    if (entry.waiting >= kMaxWaiting) return something;
    postEnvelope(member);
  }
  return something;
}

bool PointToPoint::pump() {
  bool something = false;
  for (int member = 0; member < context_.size(); ++member) something |= fetch(member);
  return match() || something;
}

bool PointToPoint::match() {
  bool something = false;
  for (auto it = receives_.begin(); it != receives_.end() && !unmatched_.empty();) {
    Receive& receive = **it;
    const auto found = std::ranges::find_if(
        unmatched_, [&](const Envelope& envelope) { return receive.fits(envelope); });
    if (found == unmatched_.end()) {
      ++it;
      continue;
    }
    const Envelope envelope = *found;
    unmatched_.erase(found);
    it = receives_.erase(it);
    if (!envelope.local) --peer(envelope.source).waiting;
    receive.matched(envelope);
    something = true;
  }
  // One operation's look may have matched another one's receive.
  if (something) context_.bell->ring();
  return something;
}

Status PointToPoint::hopeless(int from) const {
  if (from != kAnyMember) return peers_[static_cast<std::size_t>(from)].end;
  Status why;
  bool anybody = false;
  for (int member = 0; member < context_.size(); ++member) {
    const Status& end = peers_[static_cast<std::size_t>(member)].end;
    if (end.ok()) {
      anybody = anybody || member != context_.me();
      continue;
    }
    // Who left in good order is no longer waited for; who was lost ends everything.
    if (end.code() != Code::kShutdown) return end;
    why = end;
  }
  return anybody ? Status() : why;
}

}  // namespace farandole::collective::link
