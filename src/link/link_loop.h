// LinkLoop: one thread that waits for sockets and timers and calls their handlers.
//
// Handlers are called on the loop's thread only, one at a time. They must not block. All functions
// may be called from any thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"
#include "link/fork_list.h"

namespace farandole {

class LinkHandler {
 public:
  virtual ~LinkHandler() = default;
  // events: EPOLLIN, EPOLLOUT, EPOLLERR, EPOLLHUP.
  virtual void ready(std::uint32_t events) = 0;
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
  void watch(Id id, std::uint32_t events);
  // Before the descriptor is closed. The handler may be in the middle of a call on the loop.
  void remove(Id id);
  // Replaces the handler's timer.
  void setTimer(Id id, TimePoint due);
  // ready(EPOLLIN) will be called in the next turn even if the socket is quiet.
  void callAgain(Id id);
  // Runs it on the loop's thread; not if the loop has stopped.
  void post(std::function<void()> task);

  bool onThread() const { return std::this_thread::get_id() == threadId_.load(); }
  // Ends the thread. False if a handler did not return in time: it is then left behind, and with it
  // what it uses.
  bool stop(Deadline deadline);
  // In a fork child: closes every descriptor of the loop and its handlers; takes no lock.
  void closeAfterFork();

 private:
  struct Entry {
    int fd = -1;
    std::shared_ptr<LinkHandler> handler;
    TimePoint due = TimePoint::max();
  };

  LinkLoop() = default;
  void run();
  void turn();
  std::vector<std::function<void()>> takeTasks();
  void dispatch(Id id, std::uint32_t events);
  void runTimers();
  int timeout();
  void wake();

  UniqueFd epoll_;
  UniqueFd wake_;
  std::thread thread_;
  std::atomic<std::thread::id> threadId_;
  link::ForkList descriptors_;

  std::mutex mutex_;
  // Guarded by mutex_.
  bool stop_ = false;
  bool ended_ = false;
  std::condition_variable end_;
  Id lastId_ = 0;
  std::map<Id, Entry> entries_;
  std::set<std::pair<TimePoint, Id>> timers_;
  std::vector<std::function<void()>> tasks_;
  std::vector<Id> again_;
};

}  // namespace farandole
