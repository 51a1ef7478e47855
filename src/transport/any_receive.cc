#include "transport/any_receive.h"

namespace farandole::transport {

void AnyReceive::start(Peers peers) {
  std::size_t count = 0;
  {
    const MutexLock lock(mutex_);
    peers_ = std::move(peers);
    count = peers_.size();
  }
  for (std::size_t i = 0; i < count; ++i) attempt(i);
}

void AnyReceive::attempt(std::size_t index) {
  std::function<void()> after;
  {
    const MutexLock lock(mutex_);
    if (settled_) return;
    const auto& [peer, connection] = peers_[index];
    const bool taken = connection->recvArrived(
        slot_, memory_,
        [self = shared_from_this(), from = peer](const Status& status) {
          self->done_(status, status.code() == Code::kCancelled ? -1 : from);
        },
        id_,
        [self = shared_from_this(), index](const Status& status) {
          status.ok() ? self->attempt(index) : self->failed(index, status);
        },
        after);
    if (taken) {
      settled_ = taken_ = true;
      source_ = index;
      stopWatching(index);
    }
  }
  after();
}

void AnyReceive::failed(std::size_t index, const Status& why) {
  int peer = -1;
  {
    const MutexLock lock(mutex_);
    if (std::exchange(settled_, true)) return;
    stopWatching(index);
    peer = peers_[index].first;
  }
  done_(why, peer);
}

void AnyReceive::stopWatching(std::size_t except) {
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    if (i != except) peers_[i].second->unwatch(slot_, id_);
  }
}

bool AnyReceive::cancel() {
  std::shared_ptr<LinkConnection> source;
  {
    const MutexLock lock(mutex_);
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

}  // namespace farandole::transport
