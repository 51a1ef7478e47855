#include "transport/link_loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/thread.h"

namespace farandole::transport {
namespace {

// The marks of the loop's own descriptors in its epoll; every other mark there is an Id.
constexpr std::uint64_t kWakeMark = 0;
constexpr std::uint64_t kSharedMark = ~std::uint64_t{0};
constexpr std::uint64_t kAlarmMark = kSharedMark - 1;

constexpr std::size_t kEventsPerTurn = 64;

constexpr Duration kLongestSleep = std::chrono::seconds(60);

// If there was no poll for so long, the loop's thread takes over.
constexpr long kPollTimeoutNanoseconds = 3'000'000;
constexpr std::size_t kFew = 2;

void setAlarm(int fd) {
  itimerspec once{};
  once.it_value.tv_nsec = kPollTimeoutNanoseconds;
  ::timerfd_settime(fd, 0, &once, nullptr);
}

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
  descriptors_.clear();  // from here on their owners close them, and they are not watched
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

// ---- Polling: other threads do the work of the loop's thread.

Status LinkLoop::open() {
  epoll_ = UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
  shared_ = UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
  wake_ = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  alarm_ = UniqueFd(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  const auto watched = [this](const UniqueFd& fd, std::uint64_t mark) {
    return fd && control(epoll_.get(), EPOLL_CTL_ADD, fd.get(), EPOLLIN, mark);
  };
  if (!epoll_ || !watched(wake_, kWakeMark) || !watched(shared_, kSharedMark) ||
      !watched(alarm_, kAlarmMark)) {
    return Status::fromErrno("cannot make an epoll descriptor", errno);
  }
  return {};
}

bool LinkLoop::poll() {
  if (polling_.exchange(true)) return false;
  bool moved = false;
  // stop() sets over_ and then waits for polling_.
  if (!over_) {
    // Relaxed: a thread compares it with itself only.
    poller_.store(std::this_thread::get_id(), std::memory_order_relaxed);
    if (!standsBack_) standBack();
    polls_.store(polls_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    moved = lookAtFew();
    moved = callAgainNow() || moved;
    poller_.store(std::thread::id(), std::memory_order_relaxed);
  }
  polling_.store(false, std::memory_order_release);
  return moved;
}

void LinkLoop::rest() {
  if (!standsBack_) return;
  const MutexLock lock(standMutex_);
  takeBackLocked();
}

void LinkLoop::standBack() {
  const MutexLock lock(standMutex_);
  if (standsBack_) return;
  control(epoll_.get(), EPOLL_CTL_MOD, shared_.get(), 0, kSharedMark);
  standsBack_ = true;
  {
    const MutexLock entries(mutex_);
    watchUnlessPolledLocked();
  }
  // One that is set already comes in time: it is set anew if the poller is there then.
  if (!std::exchange(alarmSet_, true)) setAlarm(alarm_.get());
}

void LinkLoop::takeBackLocked() {
  if (!standsBack_) return;
  standsBack_ = false;
  const MutexLock lock(mutex_);
  // Without memory for that it is tried again when the alarm comes.
  if (!watchUnlessPolledLocked()) {
    standsBack_ = true;
    return;
  }
  // Tells at once if something is ready.
  control(epoll_.get(), EPOLL_CTL_MOD, shared_.get(), EPOLLIN, kSharedMark);
  if (!again_.empty()) wake();
}

void LinkLoop::checkPoller() {
  const MutexLock lock(standMutex_);
  const std::uint64_t polls = polls_.load(std::memory_order_relaxed);
  if (std::exchange(pollsSeen_, polls) == polls) takeBackLocked();
  alarmSet_ = standsBack_;
  if (alarmSet_) setAlarm(alarm_.get());
}

void LinkLoop::findFewLocked() {
  few_.clear();
  for (const auto& [id, entry] : entries_) {
    if (entry.fd < 0 || entry.epoll != shared_.get()) continue;
    if (few_.size() == kFew || entry.events != EPOLLIN) {
      few_.clear();
      break;
    }
    few_.push_back(entry.handler);
  }
  fewVersion_.fetch_add(1, std::memory_order_release);
  watchUnlessPolledLocked();
}

// If there are few, they are all that is shared.
bool LinkLoop::watchUnlessPolledLocked() {
  const bool watched = !standsBack_ || few_.empty();
  bool all = true;
  for (auto& [id, entry] : entries_) {
    if (entry.fd < 0 || entry.epoll != shared_.get() || entry.watched == watched) continue;
    const int operation = watched ? EPOLL_CTL_ADD : EPOLL_CTL_DEL;
    entry.watched = control(shared_.get(), operation, entry.fd, entry.events, id) == watched;
    all = all && entry.watched == watched;
  }
  return all;
}

bool LinkLoop::lookAtFew() {
  if (const auto version = fewVersion_.load(std::memory_order_acquire); version != polledVersion_) {
    std::vector<std::shared_ptr<LinkHandler>> before;  // destroyed without the lock
    const MutexLock lock(mutex_);
    before.swap(polled_);
    polled_ = few_;
    polledVersion_ = version;
  }
  if (polled_.empty()) return serveShared();
  bool moved = false;
  for (const auto& handler : polled_) moved = handler->look() || moved;
  return moved;
}

bool LinkLoop::serveShared() {
  std::array<epoll_event, kEventsPerTurn> events;
  const int count = ::epoll_wait(shared_.get(), events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    dispatch(event.data.u64, event.events);
  }
  return count > 0;
}

bool LinkLoop::callAgainNow() {
  if (!anyAgain_) return false;
  std::vector<Id> again;
  {
    const MutexLock lock(mutex_);
    again.swap(again_);
    anyAgain_ = false;
  }
  for (const Id id : again) dispatch(id, EPOLLIN);
  return !again.empty();
}

}  // namespace farandole::transport
