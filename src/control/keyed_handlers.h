// KeyedHandlers: brings messages to whoever listens for the key that they begin with.
//
// Messages may come before anyone listens for them: they wait, within a limit. Thread-safe; the
// handlers are called inside deliver() or attach(), one at a time and in the order of arrival for
// each sender, and must not call back. Message: std::string or RawBytes.
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
  // The message with the key; it may be kept.
  using Handler = std::function<void(int from, Message& message)>;

  // Once per key; what has waited is delivered at once. Never heard of again after detach().
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

  // After it no handler of that key runs; what comes for it later is dropped.
  void detach(MessageKey key) {
    const MutexLock lock(mutex_);
    listeners_.erase(key);
    gone_[key / kPage] |= std::uint64_t{1} << key % kPage;
  }

  // An error: the sender does not keep to the protocol.
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
  // Far more than all windows of the sets that a rank may be late for.
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
  // Bits of 64 keys each.
  std::unordered_map<MessageKey, std::uint64_t> gone_ GUARDED_BY(mutex_);
  std::size_t heldBytes_ GUARDED_BY(mutex_) = 0;
};

}  // namespace farandole::control
