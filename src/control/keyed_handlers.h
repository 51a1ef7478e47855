// KeyedHandlers: gives messages to the handler for the key that they begin with.
//
// Messages that arrive before their handler is attached wait, within a limit. Thread-safe. Handlers
// are called inside deliver() or attach(), one at a time, in the order of arrival for each sender,
// and must not call back. Message: std::string or RawBytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"

namespace farandole::control {

using MessageKey = std::uint32_t;

template <typename Message>
class KeyedHandlers {
 public:
  // Gets the message with its key, and may keep it.
  using Handler = std::function<void(int from, Message& message)>;

  // Called once for each key; what has waited is delivered at once. After detach() a key is never
  // used again.
  void attach(MessageKey key, Handler handler) {
    const MutexLock lock(mutex_);
    if (isGone(key)) return;
    Listener& listener = listeners_[key];
    for (auto& [from, message] : listener.held) {
      heldBytes_ -= message.capacity();
      handler(from, message);
    }
    listener.held.clear();
    listener.handler = std::move(handler);
  }

  // Afterwards no handler of that key runs, and messages for it are dropped.
  void detach(MessageKey key) {
    const MutexLock lock(mutex_);
    listeners_.erase(key);
    gone_[key / kPage] |= std::uint64_t{1} << key % kPage;
  }

  // An error if the sender breaks the protocol.
  Status deliver(int from, Message& message) {
    MessageKey key = 0;
    if (message.size() < sizeof key) {
      return Status(Code::kMismatch,
                    "rank " + std::to_string(from) + " sent a control message without a set");
    }
    std::memcpy(&key, message.data(), sizeof key);
    const MutexLock lock(mutex_);
    const auto found = listeners_.find(key);
    if (found != listeners_.end() && found->second.handler) {
      found->second.handler(from, message);
      return {};
    }
    if (isGone(key)) return {};
    if (heldBytes_ + message.capacity() > kMostHeld) {
      return Status(Code::kMismatch,
                    "rank " + std::to_string(from) +
                        " sends more for process sets that this rank has not made than can"
                        " be kept");
    }
    heldBytes_ += message.capacity();
    listeners_[key].held.emplace_back(from, std::move(message));
    return {};
  }

 private:
  // This is far more than the windows of all sets that a rank may not have made yet.
  static constexpr std::size_t kMostHeld = std::size_t{64} << 20;

  static constexpr MessageKey kPage = 64;

  struct Listener {
    Handler handler;
    std::vector<std::pair<int, Message>> held;
  };

  bool isGone(MessageKey key) const REQUIRES(mutex_) {
    const auto page = gone_.find(key / kPage);
    return page != gone_.end() && (page->second >> key % kPage & 1) != 0;
  }

  Mutex mutex_;  // held while a handler runs: detach() waits for it
  std::unordered_map<MessageKey, Listener> listeners_ GUARDED_BY(mutex_);
  // Each word has bits for 64 keys.
  std::unordered_map<MessageKey, std::uint64_t> gone_ GUARDED_BY(mutex_);
  std::size_t heldBytes_ GUARDED_BY(mutex_) = 0;
};

}  // namespace farandole::control
