// What happens when an operation is done, besides waking whoever waits: queues that a program
// polls, and callbacks on the one completion thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mutex.h"
#include "base/status.h"

namespace farandole::conductor {

struct Completion {
  std::uint64_t handle = 0;
  std::uint64_t tag = 0;
  Code code = Code::kOk;
};

// Completions in the order they happened, with an eventfd that is readable while there are any.
// Thread-safe.
class CompletionQueue {
 public:
  static Result<std::shared_ptr<CompletionQueue>> create();

  // A completion will be pushed / will not be pushed after all.
  void expect();
  void forget();
  void push(const Completion& completion);
  std::size_t pop(Completion* out, std::size_t capacity);
  int eventFd() const { return event_.get(); }
  // False if completions are still expected after that time. (An operation is seen to be done a
  // moment before its completion is here.)
  bool awaitQuiet(Duration timeout);

 private:
  CompletionQueue() = default;
  UniqueFd event_;
  Mutex mutex_;
  Condition quiet_;
  std::deque<Completion> completions_ GUARDED_BY(mutex_);
  std::int64_t expected_ GUARDED_BY(mutex_) = 0;
};

// Runs callbacks, one after the other, on a thread of its own that is started for the first one.
// Thread-safe.
class CompletionThread {
 public:
  ~CompletionThread() { stop(); }

  // Before the first post; again is cheap.
  Status start();
  void post(std::function<void()> callback);
  // Runs what was posted, then ends; later posts are dropped. Must not be called from a callback.
  void stop();
  bool isCurrent() const {
    return id_.load(std::memory_order_relaxed) == std::this_thread::get_id();
  }

 private:
  void run();
  void runCallbacks();

  Mutex mutex_;
  Condition changed_;
  std::deque<std::function<void()>> callbacks_ GUARDED_BY(mutex_);
  bool stopping_ GUARDED_BY(mutex_) = false;
  std::thread thread_ GUARDED_BY(mutex_);
  std::atomic<bool> started_{false};
  std::atomic<std::thread::id> id_;  // set by the thread itself
};

}  // namespace farandole::conductor
