#include "conductor/direct_callbacks.h"

#include <chrono>
#include <deque>
#include <iterator>
#include <thread>
#include <utility>

namespace farandole::conductor {
namespace {

// What this thread still has to run. Null: it is not in a callback.
thread_local std::deque<std::function<void()>>* running = nullptr;

}  // namespace

void DirectCallbacks::add(std::function<void()> callback) {
  owed_.fetch_add(1, std::memory_order_relaxed);
  due_.push_back(std::move(callback));
}

void DirectCallbacks::runAll(Batch batch) {
  if (running != nullptr) {
    std::move(batch.begin(), batch.end(), std::back_inserter(*running));
    return;
  }
  std::deque<std::function<void()>> mine(std::move_iterator(batch.begin()),
                                         std::move_iterator(batch.end()));
  running = &mine;
  while (!mine.empty()) {
    // The callback is destroyed before it counts as finished.
    std::exchange(mine.front(), nullptr)();
    mine.pop_front();
    // Release: a thread that sees that nothing is owed also sees what the callback did.
    owed_.fetch_sub(1, std::memory_order_release);
  }
  running = nullptr;
}

void DirectCallbacks::awaitAll() const {
  while (owed_.load(std::memory_order_acquire) > 0) {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

bool DirectCallbacks::isInside() { return running != nullptr; }

}  // namespace farandole::conductor
