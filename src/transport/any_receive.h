// AnyReceive: the receive of one message from whichever of several ranks has one first. It
// announces nothing: it watches all of them and takes the first message, or offer of one, that
// belongs to no other receive. The end of one of them is its end too.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "transport/link_connection.h"

namespace farandole::transport {

class AnyReceive : public std::enable_shared_from_this<AnyReceive> {
 public:
  using Done = std::function<void(const Status&, int peer)>;
  using Peers = std::vector<std::pair<int, std::shared_ptr<LinkConnection>>>;

  AnyReceive(std::uint64_t slot, std::uint64_t id, std::span<std::uint8_t> memory, Done done)
      : slot_(slot), id_(id), memory_(memory), done_(std::move(done)) {}

  void start(Peers peers);
  // True: nothing was or will be written; done was called with kCancelled and rank -1.
  bool cancel();

 private:
  // Takes a message of this peer, or goes on watching it.
  void attempt(std::size_t index);
  void failed(std::size_t index, const Status& why);
  void stopWatching(std::size_t except) REQUIRES(mutex_);

  const std::uint64_t slot_;
  const std::uint64_t id_;
  const std::span<std::uint8_t> memory_;
  const Done done_;

  Mutex mutex_;
  Peers peers_ GUARDED_BY(mutex_);
  bool settled_ GUARDED_BY(mutex_) = false;    // taken, failed or cancelled
  std::size_t source_ GUARDED_BY(mutex_) = 0;  // the index of the rank whose message was taken
  bool taken_ GUARDED_BY(mutex_) = false;
};

}  // namespace farandole::transport
