// Work that may hang (a dead network file system, a mute name server) with a limit for waiting.
#pragma once

#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/thread.h"

namespace farandole {

// Runs on a thread of its own, which is abandoned if it hangs: work must own all that it uses. Work
// that throws, or that no thread can be had for, has no result.
template <typename T>
class Background {
 public:
  explicit Background(std::function<T()> work) : state_(std::make_shared<State>()) {
    auto thread =
        startThread("fd-within", [state = state_, work = std::move(work)] { run(*state, work); });
    if (thread.ok()) {
      thread->detach();
    } else {
      state_->ended = true;
    }
  }

  // The result, or nothing if there is none by the deadline. To be called once.
  std::optional<T> wait(Deadline deadline) {
    std::unique_lock lock(state_->mutex);
    state_->done.wait_for(lock, deadline.left(std::chrono::hours(1)),
                          [this] { return state_->ended; });
    return std::exchange(state_->value, std::nullopt);
  }

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable done;
    bool ended = false;
    std::optional<T> value;
  };

  static void run(State& state, const std::function<T()>& work) {
    std::optional<T> value;
    try {
      value = work();
    } catch (const std::exception&) {
    }
    const std::lock_guard lock(state.mutex);
    state.value = std::move(value);
    state.ended = true;
    state.done.notify_all();
  }

  std::shared_ptr<State> state_;
};

}  // namespace farandole
