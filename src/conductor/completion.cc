#include "conductor/completion.h"

#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>

#include "base/thread.h"

namespace farandole::conductor {

Result<std::shared_ptr<CompletionQueue>> CompletionQueue::create() {
  auto queue = std::shared_ptr<CompletionQueue>(new CompletionQueue());
  queue->event_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!queue->event_) return Status::fromErrno("eventfd", errno);
  return queue;
}

void CompletionQueue::expect() {
  const MutexLock lock(mutex_);
  ++expected_;
}

void CompletionQueue::forget() {
  const MutexLock lock(mutex_);
  if (--expected_ == 0) quiet_.notifyAll();
}

bool CompletionQueue::awaitQuiet(Duration timeout) {
  const Deadline deadline = Deadline::after(timeout);
  const MutexLock lock(mutex_);
  while (expected_ != 0 && !deadline.passed()) quiet_.wait(mutex_, deadline);
  return expected_ == 0;
}

void CompletionQueue::push(const Completion& completion) {
  const MutexLock lock(mutex_);
  completions_.push_back(completion);
  if (--expected_ == 0) quiet_.notifyAll();
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(event_.get(), &one, sizeof one);
}

std::size_t CompletionQueue::pop(Completion* out, std::size_t capacity) {
  const MutexLock lock(mutex_);
  const std::size_t count = std::min(capacity, completions_.size());
  std::copy_n(completions_.begin(), count, out);
  completions_.erase(completions_.begin(),
                     completions_.begin() + static_cast<std::ptrdiff_t>(count));
  if (completions_.empty()) {
    std::uint64_t drained = 0;
    [[maybe_unused]] const auto got = ::read(event_.get(), &drained, sizeof drained);
  }
  return count;
}

Status CompletionThread::start() {
  if (started_.load(std::memory_order_acquire)) return {};
  const MutexLock lock(mutex_);
  if (stopping_ || thread_.joinable()) return {};
  auto thread = startThread("fd-complete", [this] { run(); });
  FARANDOLE_RETURN_IF_ERROR(thread.status());
  thread_ = std::move(thread).value();
  started_.store(true, std::memory_order_release);
  return {};
}

void CompletionThread::post(std::function<void()> callback) {
  const MutexLock lock(mutex_);
  if (stopping_) return;
  callbacks_.push_back(std::move(callback));
  changed_.notifyAll();
}

void CompletionThread::stop() {
  std::thread thread;
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    thread = std::move(thread_);
    changed_.notifyAll();
  }
  if (thread.joinable()) thread.join();
}

void CompletionThread::run() {
  id_ = std::this_thread::get_id();
  runCallbacks();
  id_ = std::thread::id();  // another thread may be given the same one
}

void CompletionThread::runCallbacks() {
  MutexLock lock(mutex_);
  for (;;) {
    while (!stopping_ && callbacks_.empty()) changed_.wait(mutex_, Deadline::never());
    if (callbacks_.empty()) return;
    const auto callback = std::move(callbacks_.front());
    callbacks_.pop_front();
    lock.unlock();
    callback();
    lock.lock();
  }
}

}  // namespace farandole::conductor
