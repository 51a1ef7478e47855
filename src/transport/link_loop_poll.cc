// LinkLoop, the part that lets other threads do its work.
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "transport/link_loop.h"
#include "transport/loop_marks.h"

namespace farandole::transport {
namespace {

// Without a poll for so long the loop's thread takes over.
constexpr long kPollTimeoutNanoseconds = 3'000'000;
constexpr std::size_t kFew = 2;

void setAlarm(int fd) {
  itimerspec once{};
  once.it_value.tv_nsec = kPollTimeoutNanoseconds;
  ::timerfd_settime(fd, 0, &once, nullptr);
}

}  // namespace

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
