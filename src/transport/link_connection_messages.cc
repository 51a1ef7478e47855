// LinkConnection, the part that takes sends and receives.
#include <utility>

#include "transport/link_connection.h"

namespace farandole::transport {

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

}  // namespace farandole::transport
