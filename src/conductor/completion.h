// What happens when an operation is done, besides waking the threads that wait for it: queues that
// a program polls, and callbacks on the completion thread.
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

// Completions in the order in which they happened, with an eventfd that is readable while there are
// any. Thread-safe.
class CompletionQueue {
 public:
  static Result<std::shared_ptr<CompletionQueue>> create();

  // expect: a completion will be pushed. forget: it will not be pushed after all.
  void expect();
  void forget();
  void push(const Completion& completion);
  std::size_t pop(Completion* out, std::size_t capacity);
  int eventFd() const { return event_.get(); }
  // Returns false if completions are still expected after that time. (An operation is done a moment
  // before its completion is pushed.)
  bool awaitQuiet(Duration timeout);

 private:
  CompletionQueue() = default;
  UniqueFd event_;
  Mutex mutex_;
  Condition quiet_;
  std::deque<Completion> completions_ GUARDED_BY(mutex_);
  std::int64_t expected_ GUARDED_BY(mutex_) = 0;
};

// Runs callbacks one after another on a thread of its own, which is started for the first one.
// Thread-safe.
class CompletionThread {
 public:
  ~CompletionThread() { stop(); }

  // Must be called before the first post. Further calls are cheap.
  Status start();
  void post(std::function<void()> callback);
  // Runs what was posted and ends the thread. Later posts are dropped. Must not be called from a
  // callback.
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
