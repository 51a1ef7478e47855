#include "link/any_receive.h"

namespace farandole::link {

void AnyReceive::start(Peers peers) {
  std::size_t count = 0;
  {
    const std::lock_guard lock(mutex_);
    peers_ = std::move(peers);
    count = peers_.size();
  }
  for (std::size_t i = 0; i < count; ++i) attempt(i);
}

void AnyReceive::attempt(std::size_t index) {
  std::unique_lock lock(mutex_);
  if (settled_) return;
  const auto& [peer, connection] = peers_[index];
  const auto self = shared_from_this();
  trying_ = std::this_thread::get_id();
  const bool taken = connection->recvArrived(
      slot_, memory_,
      [self, from = peer](const Status& status) {
        // Without the lock only; who holds it passes the status on.
        if (self->trying_ == std::this_thread::get_id()) {
          self->early_ = status;
        } else {
          self->done_(status, from);
        }
      },
      id_,
      [self, index](const Status& status) {
        if (self->trying_ == std::this_thread::get_id()) {
          self->early_ = status;
        } else if (status.ok()) {
          self->attempt(index);
        } else {
          self->failed(index, status);
        }
      });
  trying_ = std::thread::id();
  std::optional<Status> early = std::exchange(early_, std::nullopt);
  if (taken) {
    settled_ = taken_ = true;
    source_ = index;
    stopWatching(index);
  }
  const int from = peer;
  lock.unlock();
  if (!early) return;
  if (taken) return done_(*early, from);
  failed(index, *early);
}

void AnyReceive::failed(std::size_t index, const Status& why) {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(settled_, true)) return;
    stopWatching(index);
  }
  done_(why, peers_[index].first);
}

void AnyReceive::stopWatching(std::size_t except) {
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    if (i != except) peers_[i].second->unwatch(slot_, id_);
  }
}

bool AnyReceive::cancel() {
  std::shared_ptr<LinkConnection> source;
  {
    const std::lock_guard lock(mutex_);
    if (taken_) {
      source = peers_[source_].second;
    } else {
      if (std::exchange(settled_, true)) return false;
      stopWatching(peers_.size());
    }
  }
  if (source) return source->cancelRecv(slot_, id_);
  done_(Status(Code::kCancelled, "it was withdrawn"), -1);
  return true;
}

}  // namespace farandole::link
