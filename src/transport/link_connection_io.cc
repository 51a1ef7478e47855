// LinkConnection, the part that moves bytes.
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "transport/held_sends.h"
#include "transport/link_connection.h"

namespace farandole::transport {
namespace {

// Per turn of the loop, so that one busy connection does not keep the others waiting, nor a thread
// that wants to send on this one.
constexpr std::size_t kTurnBytes = std::size_t{512} << 10;
// What the calling thread writes itself instead of leaving it to the loop.
constexpr std::size_t kInlineBytes = std::size_t{128} << 10;
// A record up to this size is copied: one buffer costs the kernel less than three.
constexpr std::size_t kCopiedRecord = 2048;

}  // namespace

void LinkConnection::ready(std::uint32_t events) {
  MutexLock lock(mutex_);
  if ((events & EPOLLOUT) != 0) {
    full_ = false;
    flushLocked();
  }
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) readLocked();
  release(lock);
}

bool LinkConnection::look() {
  MutexLock lock(mutex_);
  const bool something = readLocked();
  release(lock);
  return something;
}

void LinkConnection::timer() {
  MutexLock lock(mutex_);
  if (state_ != State::kOpen) return;
  const TimePoint now = Clock::now();
  // A process that was stopped itself, or a machine that slept, has not listened.
  if (peerStopped_ || now - nextTimer_ > limits_.heartbeat) lastHeard_ = now;
  if (now - lastHeard_ >= limits_.silence) readLocked();
  if (state_ == State::kOpen && now - lastHeard_ >= limits_.silence) {
    endLocked(Status(Code::kPeerLost, "no sign of life for " + describeSeconds(limits_.silence) +
                                          (companions_.empty() ? "" : " (" + companions_ + ")")));
  }
  if (state_ == State::kOpen) {
    if (!full_ && now - lastSent_ >= limits_.heartbeat * 9 / 10) {
      outbox_.notice(FrameType::kHeartbeat);
      flushLocked();
    }
    nextTimer_ = now + std::min(limits_.heartbeat, limits_.silence / 4);
    loop_->setTimer(id_, nextTimer_);
  }
  release(lock);
}

void LinkConnection::peerStopped(bool stopped) {
  const MutexLock lock(mutex_);
  peerStopped_ = stopped;
  lastHeard_ = Clock::now();
}

void LinkConnection::flushIfSmallLocked() {
  if (state_ != State::kOpen || full_ || !broken_.ok()) return;
  if (held_ || HeldSends::add(shared_from_this())) {
    held_ = true;
    return;
  }
  if (outbox_.pendingBytes(kInlineBytes) < kInlineBytes) return flushLocked();
  full_ = true;
  watchLocked(true);
}

void LinkConnection::flushHeld() {
  MutexLock lock(mutex_);
  held_ = false;
  // A driver writes all it can: nobody else would be sooner, and to be told that there is room
  // costs three system calls.
  flushLocked();
  release(lock);
}

void LinkConnection::flushLocked() {
  if ((state_ != State::kOpen && state_ != State::kLeaving) || full_ || !broken_.ok()) return;
  std::vector<LinkCallback> done;
  const Result<bool> written = writer_.write(stream_, outbox_, kTurnBytes, done);
  lastSent_ = coarseNow();
  for (LinkCallback& callback : done) finishLocked(std::move(callback), {});
  if (!written.ok()) return brokenLocked(written.status());
  full_ = !written.value();
  watchLocked(full_);
  if (written.value() && state_ == State::kLeaving) stream_.finishWriting();
}

void LinkConnection::brokenLocked(Status status) {
  // The other side may have said why before it closed: read that first, on the loop.
  broken_ = std::move(status);
  watchLocked(false);
  loop_->callAgain(id_);
}

bool LinkConnection::nothingWaitsLocked() const {
  return state_ == State::kOpen && !full_ && !held_ && broken_.ok() && !HeldSends::active() &&
         writer_.idle() && outbox_.empty();
}

void LinkConnection::writeRecordLocked(std::string_view front, std::span<const std::byte> body) {
  const std::size_t total = kFrameHeaderBytes + front.size() + body.size();
  FrameHeader header{FrameType::kRecord, epoch_};
  header.length = static_cast<std::uint32_t>(front.size() + body.size());
  const FrameHeaderBytes head = encodeFrameHeader(header);
  const std::array<iovec, 3> buffers = {iovec{const_cast<std::uint8_t*>(head.data()), head.size()},
                                        iovec{const_cast<char*>(front.data()), front.size()},
                                        iovec{const_cast<std::byte*>(body.data()), body.size()}};
  std::array<std::uint8_t, kCopiedRecord> together;
  iovec whole{together.data(), 0};
  if (total <= together.size()) {
    for (const iovec& buffer : buffers) {
      if (buffer.iov_len == 0) continue;
      std::memcpy(together.data() + whole.iov_len, buffer.iov_base, buffer.iov_len);
      whole.iov_len += buffer.iov_len;
    }
  }
  const Result<std::size_t> sent =
      stream_.write(whole.iov_len > 0 ? std::span(&whole, 1) : std::span<const iovec>(buffers));
  lastSent_ = coarseNow();
  if (!sent.ok()) return brokenLocked(sent.status());
  if (sent.value() == total) return;
  std::string rest;
  rest.reserve(total - sent.value());
  std::size_t skip = sent.value();
  for (const iovec& buffer : buffers) {
    const std::size_t gone = std::min(skip, buffer.iov_len);
    rest.append(static_cast<const char*>(buffer.iov_base) + gone, buffer.iov_len - gone);
    skip -= gone;
  }
  writer_.finish(std::move(rest));
  full_ = true;
  watchLocked(true);
}

bool LinkConnection::readLocked() {
  if (state_ == State::kLeaving) {
    drainLocked();
    return true;
  }
  if (state_ != State::kOpen) return false;
  std::size_t bytes = 0;
  const Result<FrameReader::Turn> turn = reader_.read(stream_, *this, kTurnBytes, bytes);
  if (bytes > 0) lastHeard_ = coarseNow();
  if (!turn.ok()) {
    Status status = turn.status();
    if (status.code() == Code::kShutdown) {
      status = Status(Code::kPeerLost,
                      "it closed the connection without a goodbye: it has ended, or given up");
    } else if (status.code() == Code::kUnavailable) {
      status = Status(Code::kPeerLost, status.message());
    }
    endLocked(std::move(status));
    return true;
  }
  switch (turn.value()) {
    case FrameReader::Turn::kStopped:
      endLocked(Status(Code::kShutdown, "it has shut down its connections"));
      return true;
    case FrameReader::Turn::kBudgetUsed: loop_->callAgain(id_); break;
    case FrameReader::Turn::kDrained:
      if (!broken_.ok()) {
        endLocked(Status(Code::kPeerLost, broken_.message()));
        return true;
      }
      break;
  }
  // Announcements and credit that reading has led to.
  if (!outbox_.empty()) flushLocked();
  return bytes > 0;
}

void LinkConnection::drainLocked() {
  std::array<std::uint8_t, 16384> nothing;
  const iovec buffer{nothing.data(), nothing.size()};
  for (int i = 0; i < 32; ++i) {
    const Result<std::size_t> got = stream_.read(std::span(&buffer, 1));
    if (!got.ok() || !broken_.ok()) return endLocked(end_);
    if (got.value() == 0) return;
  }
  loop_->callAgain(id_);
}

Result<std::span<std::uint8_t>> LinkConnection::frameBegins(const FrameHeader& header) {
  if (header.epoch != epoch_) {
    return Status(Code::kMismatch, "it is in epoch " + std::to_string(header.epoch) +
                                       ", this rank in epoch " + std::to_string(epoch_));
  }
  if (header.type == FrameType::kData) return inbox_.begin(header);
  if (header.type == FrameType::kRecord) {
    recordMessage_.renew(header.length);
    return std::span(reinterpret_cast<std::uint8_t*>(recordMessage_.data()), header.length);
  }
  controlMessage_.resize(header.length);
  return std::span(reinterpret_cast<std::uint8_t*>(controlMessage_.data()), controlMessage_.size());
}

Result<bool> LinkConnection::frameEnds(const FrameHeader& header) {
  Status status;
  switch (header.type) {
    case FrameType::kData:
      if (auto done = inbox_.finish()) finishLocked(std::move(*done), {});
      break;
    case FrameType::kControl:
      if (events_.onControl) {
        events_.onControl(std::exchange(controlMessage_, {}));
        noted_ = true;
      }
      break;
    case FrameType::kRecord:
      if (events_.onRecord) status = events_.onRecord(recordMessage_);
      break;
    case FrameType::kHeartbeat: break;
    case FrameType::kOffer: status = inbox_.offered(header.slot, header.total); break;
    case FrameType::kPosted: status = outbox_.posted(header.slot, header.total); break;
    case FrameType::kCredit: status = outbox_.credit(header.total); break;
    case FrameType::kGoodbye: return false;
  }
  if (!status.ok()) return status;
  return true;
}

void LinkConnection::watchLocked(bool writing) {
  if (std::exchange(watchesRoom_, writing) == writing) return;
  loop_->watch(id_, writing ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

}  // namespace farandole::transport
