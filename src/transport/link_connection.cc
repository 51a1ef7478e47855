#include "transport/link_connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "transport/held_sends.h"

namespace farandole::transport {
namespace {

// Data that the kernel may hold unsent: what lies there cannot be overtaken by a control message.
constexpr int kUnsentBytes = 256 << 10;

void limitUnsent(int fd) {
  ::setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &kUnsentBytes, sizeof kUnsentBytes);
}

// Per turn of the loop, so that one busy connection does not keep the others waiting, nor a thread
// that wants to send on this one.
constexpr std::size_t kTurnBytes = std::size_t{512} << 10;
// What the calling thread writes itself instead of leaving it to the loop.
constexpr std::size_t kInlineBytes = std::size_t{128} << 10;
// A record up to this size is copied: one buffer costs the kernel less than three.
constexpr std::size_t kCopiedRecord = 2048;

}  // namespace

LinkConnection::LinkConnection(std::shared_ptr<LinkLoop> loop, int peer, std::uint32_t epoch,
                               WireSecurity mode, const LinkLimits& limits, Events events)
    : loop_(std::move(loop)),
      peer_(peer),
      epoch_(epoch),
      mode_(mode),
      limits_(limits),
      events_(std::move(events)),
      outbox_(epoch),
      inbox_(outbox_, limits.window) {}

void LinkConnection::attach(Established established) {
  MutexLock lock(mutex_);
  if (state_ != State::kWaiting) return;
  if (Status status = attachLocked(std::move(established)); !status.ok()) {
    endLocked(std::move(status));
  }
  release(lock);
}

Status LinkConnection::attachLocked(Established established) {
  host_ = std::move(established.host);
  address_ = std::move(established.address);
  limitUnsent(established.fd.get());
  if (mode_ == WireSecurity::kIntegrity) {
    FARANDOLE_ASSIGN_OR_RETURN(auto keys, exportFrameKeys(established.ssl.get()));
    FARANDOLE_ASSIGN_OR_RETURN(auto first, FrameSeal::make(keys.fromConnector));
    FARANDOLE_ASSIGN_OR_RETURN(auto second, FrameSeal::make(keys.fromListener));
    writer_.seal(std::move(established.connector ? first : second));
    reader_.seal(std::move(established.connector ? second : first));
  }
  if (mode_ != WireSecurity::kEncrypt) established.ssl.reset();
  stream_ = Stream(std::move(established.fd), std::move(established.ssl));
  FARANDOLE_ASSIGN_OR_RETURN(id_, loop_->addShared(stream_.fd(), EPOLLIN, shared_from_this()));
  outbox_.open(established.window);
  state_ = State::kOpen;
  lastHeard_ = lastSent_ = Clock::now();
  nextTimer_ = lastHeard_;
  loop_->setTimer(id_, nextTimer_);
  // libssl may have read ahead into the first frames.
  loop_->callAgain(id_);
  flushLocked();
  return {};
}

Status LinkConnection::control(std::string message) {
  MutexLock lock(mutex_);
  Status status = state_ == State::kWaiting || state_ == State::kOpen ? Status() : end_;
  if (status.ok()) {
    status = outbox_.control(std::move(message));
    if (!status.ok()) status = namedLocked(std::move(status));
    flushIfSmallLocked();
  }
  release(lock);
  return status;
}

Status LinkConnection::record(std::string_view front, std::span<const std::byte> body) {
  MutexLock lock(mutex_);
  if (state_ != State::kWaiting && state_ != State::kOpen) return end_;
  // A seal, or a TLS record, is made of the whole: the writer's work.
  if (mode_ == WireSecurity::kHandshake && nothingWaitsLocked() &&
      front.size() + body.size() <= kMaxControl) {
    writeRecordLocked(front, body);
    return {};
  }
  std::string message(front);
  message.append(reinterpret_cast<const char*>(body.data()), body.size());
  Status status = outbox_.control(std::move(message), FrameType::kRecord);
  if (!status.ok()) status = namedLocked(std::move(status));
  flushIfSmallLocked();
  release(lock);
  return status;
}

void LinkConnection::leave() {
  MutexLock lock(mutex_);
  const Status left(Code::kShutdown, "this rank has shut down its connections");
  if (state_ == State::kWaiting) {
    endLocked(left);
  } else if (state_ == State::kOpen) {
    state_ = State::kLeaving;
    end_ = left;
    for (LinkCallback& callback : outbox_.goodbye()) finishLocked(std::move(callback), left);
    for (LinkCallback& callback : inbox_.abandon()) finishLocked(std::move(callback), left);
    flushLocked();
  }
  release(lock);
}

void LinkConnection::fail(Status status) {
  MutexLock lock(mutex_);
  endLocked(std::move(status));
  release(lock);
}

void LinkConnection::setCompanions(std::string text) {
  const MutexLock lock(mutex_);
  companions_ = std::move(text);
}

bool LinkConnection::ended() const {
  const MutexLock lock(mutex_);
  return state_ == State::kEnded;
}

std::uint64_t LinkConnection::heldBytes() const {
  const MutexLock lock(mutex_);
  return inbox_.heldBytes();
}

Status LinkConnection::namedLocked(Status status) const {
  std::string who = "rank " + std::to_string(peer_);
  if (!host_.empty()) who += " on " + host_;
  if (!address_.empty()) who += " (" + address_ + ")";
  return Status(status.code(), who + ": " + status.message()).withRank(peer_, host_);
}

void LinkConnection::endLocked(Status status) {
  if (state_ == State::kEnded) return;
  end_ = status.rank() >= 0 || state_ == State::kLeaving ? status : namedLocked(std::move(status));
  state_ = State::kEnded;
  if (id_ != 0) loop_->remove(id_);
  stream_.close();
  finishLocked(writer_.abandon(), end_);
  for (LinkCallback& callback : outbox_.abandon()) finishLocked(std::move(callback), end_);
  for (LinkCallback& callback : inbox_.abandon()) finishLocked(std::move(callback), end_);
  if (events_.onEnd) {
    events_.onEnd(end_);
    noted_ = true;
  }
}

void LinkConnection::finishLocked(LinkCallback callback, Status status) {
  if (!callback) return;
  finished_.emplace_back(std::move(callback), std::move(status));
}

LinkConnection::Calls LinkConnection::takeCallsLocked() {
  for (LinkCallback& arrived : inbox_.takeFired()) finishLocked(std::move(arrived), {});
  return {std::exchange(finished_, {}), std::exchange(noted_, false)};
}

void LinkConnection::make(const Calls& calls) const {
  for (const auto& [call, why] : calls.finished) call(why);
  if (calls.noted && events_.noted) events_.noted();
}

// Not checked: clang does not see which mutex an argument holds.
void LinkConnection::release(MutexLock& lock) NO_THREAD_SAFETY_ANALYSIS {
  if (finished_.empty() && !noted_ && !inbox_.anyFired()) return lock.unlock();
  const Calls calls = takeCallsLocked();
  lock.unlock();
  make(calls);
}

// ---- Sends and receives.

void LinkConnection::send(std::uint64_t slot, std::span<const std::uint8_t> bytes,
                          LinkCallback done, std::uint64_t id) {
  MutexLock lock(mutex_);
  SendOperation operation{slot, bytes, std::move(done), id};
  Status status = state_ == State::kWaiting || state_ == State::kOpen ? Status() : end_;
  if (status.ok()) {
    status = outbox_.send(operation);
    if (status.ok()) {
      flushIfSmallLocked();
    } else if (status.code() == Code::kMismatch) {
      endLocked(status);
      status = end_;
    } else {
      status = namedLocked(std::move(status));
    }
  }
  if (!status.ok()) finishLocked(std::move(operation.done), std::move(status));
  release(lock);
}

void LinkConnection::recv(std::uint64_t slot, std::span<std::uint8_t> memory, LinkCallback done,
                          std::uint64_t id) {
  MutexLock lock(mutex_);
  recvLocked({slot, memory, std::move(done), id, false});
  release(lock);
}

void LinkConnection::recvLocked(ReceiveOperation operation) {
  const bool open = state_ == State::kWaiting || state_ == State::kOpen;
  // What came before a goodbye is still there.
  if (!open && !(end_.code() == Code::kShutdown && inbox_.holdsWhole(operation.slot))) {
    return finishLocked(std::move(operation.done), end_);
  }
  Result<std::optional<LinkCallback>> posted = inbox_.post(operation);
  if (!posted.ok()) {
    if (open) endLocked(posted.status());
    finishLocked(std::move(operation.done), end_);
  } else if (posted.value()) {
    finishLocked(std::move(*posted.value()), {});
  }
  if (open) flushIfSmallLocked();
}

bool LinkConnection::recvArrived(std::uint64_t slot, std::span<std::uint8_t> memory,
                                 LinkCallback done, std::uint64_t id, LinkCallback arrived,
                                 std::function<void()>& after) {
  const MutexLock lock(mutex_);
  const bool open = state_ == State::kWaiting || state_ == State::kOpen;
  const bool taken = inbox_.hasUnclaimed(slot);
  if (taken) {
    recvLocked({slot, memory, std::move(done), id, false});
  } else if (open) {
    inbox_.watch(slot, id, std::move(arrived));
  } else {
    finishLocked(std::move(arrived), end_);
  }
  after = [self = shared_from_this(), calls = takeCallsLocked()] { self->make(calls); };
  return taken;
}

void LinkConnection::unwatch(std::uint64_t slot, std::uint64_t id) {
  const MutexLock lock(mutex_);
  inbox_.unwatch(slot, id);
}

bool LinkConnection::cancelled(MutexLock& lock, std::optional<LinkCallback> callback) {
  const bool found = callback.has_value();
  if (found) finishLocked(std::move(*callback), Status(Code::kCancelled, "it was withdrawn"));
  release(lock);
  return found;
}

bool LinkConnection::cancelSend(std::uint64_t slot, std::uint64_t id) {
  MutexLock lock(mutex_);
  return cancelled(lock, outbox_.cancel(slot, id));
}

bool LinkConnection::cancelRecv(std::uint64_t slot, std::uint64_t id) {
  MutexLock lock(mutex_);
  return cancelled(lock, inbox_.cancel(slot, id));
}

// ---- Moving bytes.

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
  // A driver writes all it can: no other thread would be sooner, and waiting for room costs three
  // system calls.
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
