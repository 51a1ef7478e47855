// LinkLoop: one thread that waits for sockets and timers and calls their handlers.
//
// Handlers are called on the loop's thread, one at a time; those added with addShared() also inside
// poll(), on the thread that calls it, and perhaps on both threads at once. They must not block.
// All functions may be called from any thread.
//
// While another thread polls, the loop's thread stands back: it does not watch the shared sockets,
// so that it neither takes a processor nor competes for the same bytes. It keeps its timers. It
// takes over again at rest(), or if there was no poll() for a few milliseconds. Sockets that the
// poller looks at one by one leave the epoll meanwhile: the kernel then need not report every
// packet.
#pragma once

#include <sys/epoll.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mutex.h"
#include "base/status.h"
#include "transport/fork_list.h"

namespace farandole::transport {

class LinkHandler {
 public:
  virtual ~LinkHandler() = default;
  // events: EPOLLIN, EPOLLOUT, EPOLLERR, EPOLLHUP.
  virtual void ready(std::uint32_t events) = 0;
  // Reads what is there, whether or not something is. True if it was.
  virtual bool look() {
    ready(EPOLLIN);
    return true;
  }
  virtual void timer() = 0;
};

class LinkLoop {
 public:
  // Identifies a registration; 0 is none.
  using Id = std::uint64_t;

  static Result<std::shared_ptr<LinkLoop>> start();
  ~LinkLoop();
  LinkLoop(const LinkLoop&) = delete;
  LinkLoop& operator=(const LinkLoop&) = delete;

  // Keeps the handler until remove(). fd < 0: only timers.
  Result<Id> add(int fd, std::uint32_t events, std::shared_ptr<LinkHandler> handler);
  Result<Id> addShared(int fd, std::uint32_t events, std::shared_ptr<LinkHandler> handler);
  void watch(Id id, std::uint32_t events);
  // Called before the descriptor is closed. The handler may be in the middle of a call on the loop.
  void remove(Id id);
  // Replaces the handler's timer.
  void setTimer(Id id, TimePoint due);
  // ready(EPOLLIN) will be called in the next turn even if the socket is quiet.
  void callAgain(Id id);
  // Runs it on the loop's thread; not if the loop has stopped.
  void post(std::function<void()> task);

  bool onThread() const { return std::this_thread::get_id() == threadId_.load(); }
  // On the loop's thread, or inside poll().
  bool drives() const { return onThread() || std::this_thread::get_id() == poller_.load(); }

  // Calls the shared handlers whose sockets are ready. Never waits. True if there was one. False
  // also if another thread is in it, or this one.
  bool poll();
  // No thread polls for the time being.
  void rest();

  // Ends the thread. False if a handler did not return in time: it is then left behind, and with it
  // what it uses.
  bool stop(Deadline deadline);
  // In a fork child: closes every descriptor of the loop and its handlers; takes no lock.
  void closeAfterFork();

 private:
  struct Entry {
    int fd = -1;
    int epoll = -1;
    std::uint32_t events = 0;
    std::shared_ptr<LinkHandler> handler;
    TimePoint due = TimePoint::max();
    bool watched = false;  // it is in its epoll
  };

  LinkLoop() = default;
  static bool control(int epoll, int operation, int fd, std::uint32_t events, std::uint64_t mark);
  Status open();
  Result<Id> addTo(int epoll, int fd, std::uint32_t events, std::shared_ptr<LinkHandler> handler);
  void run();
  void turn();
  bool serveShared();
  bool lookAtFew();
  void findFewLocked() REQUIRES(mutex_);
  bool watchUnlessPolledLocked() REQUIRES(mutex_);
  bool callAgainNow();
  void standBack();
  void takeBackLocked() REQUIRES(standMutex_);
  void checkPoller();
  std::vector<std::function<void()>> takeTasks();
  void dispatch(Id id, std::uint32_t events);
  void runTimers();
  int timeout();
  void wake();

  UniqueFd epoll_;
  UniqueFd shared_;  // an epoll too; a member of epoll_, watched unless the thread stands back
  UniqueFd wake_;
  UniqueFd alarm_;  // a timer that makes the thread look whether the poller is still there
  std::thread thread_;
  std::atomic<std::thread::id> threadId_;
  ForkList descriptors_;

  std::atomic<bool> over_{false};     // stop() was called
  std::atomic<bool> polling_{false};  // a thread is inside poll()
  std::atomic<std::thread::id> poller_;
  std::atomic<std::uint64_t> polls_{0};
  std::vector<std::shared_ptr<LinkHandler>> polled_;  // the poller's copy of few_
  std::uint64_t polledVersion_ = 0;
  std::atomic<bool> anyAgain_{false};  // again_ is not empty
  std::atomic<std::uint64_t> fewVersion_{0};
  std::atomic<bool> standsBack_{false};  // changed with standMutex_ held
  Mutex standMutex_;
  bool alarmSet_ GUARDED_BY(standMutex_) = false;
  std::uint64_t pollsSeen_ GUARDED_BY(standMutex_) = 0;

  Mutex mutex_;
  Condition end_;
  bool stop_ GUARDED_BY(mutex_) = false;
  bool ended_ GUARDED_BY(mutex_) = false;
  Id lastId_ GUARDED_BY(mutex_) = 0;
  std::map<Id, Entry> entries_ GUARDED_BY(mutex_);
  std::set<std::pair<TimePoint, Id>> timers_ GUARDED_BY(mutex_);
  std::vector<std::function<void()>> tasks_ GUARDED_BY(mutex_);
  std::vector<Id> again_ GUARDED_BY(mutex_);
  // The shared handlers, if they are so few that asking each costs less than asking which; empty if
  // they are more, or one waits for room to write.
  std::vector<std::shared_ptr<LinkHandler>> few_ GUARDED_BY(mutex_);
};

}  // namespace farandole::transport
