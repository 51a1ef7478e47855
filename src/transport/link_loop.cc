#include "transport/link_loop.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/thread.h"
#include "transport/loop_marks.h"

namespace farandole::transport {
namespace {

constexpr Duration kLongestSleep = std::chrono::seconds(60);

}  // namespace

bool LinkLoop::control(int epoll, int operation, int fd, std::uint32_t events, std::uint64_t mark) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = mark;
  return ::epoll_ctl(epoll, operation, fd, &event) == 0;
}

Result<std::shared_ptr<LinkLoop>> LinkLoop::start() {
  std::shared_ptr<LinkLoop> loop(new LinkLoop());
  FARANDOLE_RETURN_IF_ERROR(loop->open());
  // The thread owns nothing: a loop is destroyed only after stop(), or left behind by it.
  FARANDOLE_ASSIGN_OR_RETURN(loop->thread_,
                             startThread("farandole-link", [raw = loop.get()] { raw->run(); }));
  return loop;
}

LinkLoop::~LinkLoop() {
  if (thread_.joinable()) stop(Deadline::never());
}

bool LinkLoop::stop(Deadline deadline) {
  MutexLock lock(mutex_);
  stop_ = true;
  over_ = true;
  wake();
  if (onThread()) return true;
  while (!ended_ && !deadline.passed()) {
    end_.wait(mutex_, deadline);
  }
  const bool ended = ended_;
  lock.unlock();
  if (!thread_.joinable()) return ended;
  if (!ended) {
    thread_.detach();
    return false;
  }
  thread_.join();
  while (polling_ && !deadline.passed()) std::this_thread::yield();
  if (polling_) return false;
  // They hold each other through this loop, and are destroyed without its lock.
  std::map<Id, Entry> entries;
  std::vector<std::function<void()>> tasks;
  std::vector<std::shared_ptr<LinkHandler>> few;
  std::vector<std::shared_ptr<LinkHandler>> polled;
  lock.lock();
  entries.swap(entries_);
  tasks.swap(tasks_);
  timers_.clear();
  few.swap(few_);
  polled.swap(polled_);
  descriptors_.clear();  // from here on their owners close them one by one, unwatched
  lock.unlock();
  return true;
}

Result<LinkLoop::Id> LinkLoop::add(int fd, std::uint32_t events,
                                   std::shared_ptr<LinkHandler> handler) {
  return addTo(epoll_.get(), fd, events, std::move(handler));
}

Result<LinkLoop::Id> LinkLoop::addShared(int fd, std::uint32_t events,
                                         std::shared_ptr<LinkHandler> handler) {
  return addTo(shared_.get(), fd, events, std::move(handler));
}

Result<LinkLoop::Id> LinkLoop::addTo(int epoll, int fd, std::uint32_t events,
                                     std::shared_ptr<LinkHandler> handler) {
  const MutexLock lock(mutex_);
  const Id id = ++lastId_;
  if (fd >= 0) {
    if (!control(epoll, EPOLL_CTL_ADD, fd, events, id)) {
      return Status::fromErrno("cannot watch a socket", errno);
    }
    descriptors_.add(fd);
  }
  entries_[id] = {fd, epoll, events, std::move(handler), TimePoint::max(), fd >= 0};
  findFewLocked();
  return id;
}

void LinkLoop::watch(Id id, std::uint32_t events) {
  const MutexLock lock(mutex_);
  const auto found = entries_.find(id);
  if (found == entries_.end() || found->second.fd < 0) return;
  Entry& entry = found->second;
  entry.events = events;
  if (entry.watched) control(entry.epoll, EPOLL_CTL_MOD, entry.fd, events, id);
  findFewLocked();
}

void LinkLoop::remove(Id id) {
  std::shared_ptr<LinkHandler> last;  // destroyed without the lock
  const MutexLock lock(mutex_);
  const auto found = entries_.find(id);
  if (found == entries_.end()) return;
  if (found->second.fd >= 0) {
    // Not left to close(): a fork child may hold a copy, which would keep it in the epoll.
    if (found->second.watched) {
      ::epoll_ctl(found->second.epoll, EPOLL_CTL_DEL, found->second.fd, nullptr);
    }
    descriptors_.remove(found->second.fd);
  }
  timers_.erase({found->second.due, id});
  last = std::move(found->second.handler);
  entries_.erase(found);
  findFewLocked();
}

void LinkLoop::setTimer(Id id, TimePoint due) {
  const MutexLock lock(mutex_);
  const auto found = entries_.find(id);
  if (found == entries_.end()) return;
  timers_.erase({found->second.due, id});
  found->second.due = due;
  timers_.insert({due, id});
  if (!onThread() && timers_.begin()->second == id) wake();
}

void LinkLoop::callAgain(Id id) {
  const MutexLock lock(mutex_);
  again_.push_back(id);
  anyAgain_ = true;
  // A poller comes back to it, or says that it rests.
  if (!onThread() && !(drives() && standsBack_)) wake();
}

void LinkLoop::post(std::function<void()> task) {
  const MutexLock lock(mutex_);
  if (stop_) return;
  tasks_.push_back(std::move(task));
  wake();
}

void LinkLoop::wake() {
  const std::uint64_t one = 1;
  // Can fail only if the counter is full, and then the thread is awake.
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
}

void LinkLoop::run() {
  threadId_ = std::this_thread::get_id();
  for (;;) {
    {
      const MutexLock lock(mutex_);
      if (stop_) {
        ended_ = true;
        end_.notifyAll();
        return;
      }
    }
    turn();
  }
}

void LinkLoop::turn() {
  std::array<epoll_event, kEventsPerTurn> events{};
  const int count =
      ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), timeout());
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    std::uint64_t count64 = 0;
    switch (event.data.u64) {
      case kWakeMark: {
        [[maybe_unused]] const ssize_t got = ::read(wake_.get(), &count64, sizeof count64);
        break;
      }
      case kAlarmMark: {
        [[maybe_unused]] const ssize_t got = ::read(alarm_.get(), &count64, sizeof count64);
        checkPoller();
        break;
      }
      case kSharedMark:
        if (!standsBack_) serveShared();
        break;
      default: dispatch(event.data.u64, event.events);
    }
  }
  if (!standsBack_) callAgainNow();
  for (const auto& task : takeTasks()) task();
  runTimers();
}

std::vector<std::function<void()>> LinkLoop::takeTasks() {
  const MutexLock lock(mutex_);
  return std::exchange(tasks_, {});
}

void LinkLoop::dispatch(Id id, std::uint32_t events) {
  std::shared_ptr<LinkHandler> handler;
  {
    const MutexLock lock(mutex_);
    const auto found = entries_.find(id);
    // Removed since the event was fetched.
    if (found == entries_.end()) return;
    handler = found->second.handler;
  }
  handler->ready(events);
}

void LinkLoop::runTimers() {
  const TimePoint now = Clock::now();
  for (;;) {
    std::shared_ptr<LinkHandler> handler;
    {
      const MutexLock lock(mutex_);
      if (timers_.empty() || timers_.begin()->first > now) return;
      Entry& entry = entries_[timers_.begin()->second];
      timers_.erase(timers_.begin());
      entry.due = TimePoint::max();
      handler = entry.handler;
    }
    handler->timer();
  }
}

int LinkLoop::timeout() {
  const MutexLock lock(mutex_);
  if (stop_ || !tasks_.empty() || (!again_.empty() && !standsBack_)) return 0;
  if (timers_.empty()) return static_cast<int>(kLongestSleep / std::chrono::milliseconds(1));
  const Duration rest = timers_.begin()->first - Clock::now();
  if (rest <= Duration::zero()) return 0;
  // Rounded up, so that the timer is due when the thread wakes.
  const auto wait = std::chrono::ceil<std::chrono::milliseconds>(std::min(rest, kLongestSleep));
  return static_cast<int>(wait.count());
}

void LinkLoop::closeAfterFork() {
  descriptors_.closeAll();
  epoll_.reset();
  shared_.reset();
  wake_.reset();
  alarm_.reset();
}

}  // namespace farandole::transport
