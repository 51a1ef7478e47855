#include "collective/link/point_to_point.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "base/little_endian.h"
#include "collective/link/messages.h"

namespace farandole::collective::link {
namespace {

// Envelopes of one member that may wait for receives; then it is no longer listened to.
constexpr std::size_t kMaxWaiting = 65536;
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 48;

}  // namespace

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
