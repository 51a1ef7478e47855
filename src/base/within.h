// Work that may hang (a network file system or a name server that does not answer), with a limit
// for waiting.
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/thread.h"

namespace farandole {

// Runs on a thread of its own, which is abandoned if it hangs: work must own all that it uses. Work
// that throws has no result, nor has work for which no thread could be started.
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
    State& state = *state_;
    const MutexLock lock(state.mutex);
    while (!state.ended && !deadline.passed()) state.done.wait(state.mutex, deadline);
    return std::exchange(state.value, std::nullopt);
  }

 private:
  struct State {
    Mutex mutex;
    Condition done;
    bool ended GUARDED_BY(mutex) = false;
    std::optional<T> value GUARDED_BY(mutex);
  };

  static void run(State& state, const std::function<T()>& work) {
    std::optional<T> value;
    try {
      value = work();
    } catch (const std::exception&) {
    }
    const MutexLock lock(state.mutex);
    state.value = std::move(value);
    state.ended = true;
    state.done.notifyAll();
  }

  std::shared_ptr<State> state_;
};

}  // namespace farandole
