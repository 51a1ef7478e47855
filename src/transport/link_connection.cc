#include "transport/link_connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

namespace farandole::transport {
namespace {

// Data that the kernel may hold unsent: what lies there cannot be overtaken by a control message.
constexpr int kUnsentBytes = 256 << 10;

void limitUnsent(int fd) {
  ::setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &kUnsentBytes, sizeof kUnsentBytes);
}

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

}  // namespace farandole::transport
