// Work that may hang (a dead network file system, a mute name server) with a limit for waiting.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "bootstrap/unix_socket.h"

namespace farandole {

// Runs on a thread of its own, which is abandoned if it hangs: work must own all that it uses.
template <typename T>
class Background {
 public:
  explicit Background(std::function<T()> work) : state_(std::make_shared<State>()) {
    SignalsBlocked blocked;  // they are the main thread's
    std::thread([state = state_, work = std::move(work)] {
      T value = work();
      const std::lock_guard lock(state->mutex);
      state->value = std::move(value);
      state->done.notify_all();
    }).detach();
  }

  // The result, or nothing if it has not come by the deadline. To be called once.
  std::optional<T> wait(Deadline deadline) {
    std::unique_lock lock(state_->mutex);
    const auto ready = [this] { return state_->value.has_value(); };
    state_->done.wait_for(lock, deadline.left(std::chrono::hours(1)), ready);
    return std::exchange(state_->value, std::nullopt);
  }

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable done;
    std::optional<T> value;
  };
  std::shared_ptr<State> state_;
};

}  // namespace farandole
