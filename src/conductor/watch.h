// Watch: the thread that knows which ranks are alive. It waits on pidfds, and turns the loss of a
// rank into the failure of everything in flight, with the name of that rank.
//
// Liveness on this machine is decided by pidfds and by what bootstrap reports, never by a closed
// socket: fork children hold copies of every socket. Ranks of other machines are lost when
// bootstrap says so or when their connection is silent for too long. A rank that left in an orderly
// way (its leave mark is set) may end; any other end is a failure. Operations that still wait for a
// rank that ended after leaving fail, too: the neighbourhood is told that nothing more comes from
// it.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mutex.h"
#include "base/status.h"
#include "bootstrap/bootstrap.h"
#include "conductor/leave_marks.h"
#include "machine/neighbourhood.h"

namespace farandole::conductor {

// What the watch reports to: the conductor. Called by the watch's thread.
class WatchListener {
 public:
  virtual ~WatchListener() = default;
  // The job is over for this rank: everything in flight and everything later fails with that
  // status.
  virtual void fail(Status status) = 0;
  // Called several times a second, because this process runs. wasStopped: it did not run for a
  // while, so that no rank is late because of that time.
  virtual void runs(TimePoint now, bool wasStopped) = 0;
};

class Watch {
 public:
  struct Peer {
    std::int32_t rank = 0;
    int localRank = 0;
    std::string host;
    pid_t pid = 0;
  };

  using Lost = std::function<void(const Status&)>;

  struct Options {
    std::int32_t me = 0;      // this rank
    std::vector<Peer> peers;  // the other ranks of this machine
    // Bootstrap reports which ranks are stopped. Otherwise the watch finds out by itself.
    bool stopsReported = false;
    Lost lost;  // called with a loss, after the listener, on any thread; may be empty
  };

  // The references outlive this object.
  static Result<std::unique_ptr<Watch>> start(machine::Neighbourhood& neighbourhood,
                                              LeaveMarks& marks, WatchListener& listener,
                                              Options options);
  ~Watch() { stop(); }

  // Bootstrap reports the end of a rank, or that bootstrap itself has ended (rank -1). Any thread
  // may call it.
  void rankEnded(const bootstrap::RankEnd& end);
  // Bootstrap reports that a rank was stopped or continued. Any thread may call it.
  void rankStopped(const bootstrap::RankStop& stop);
  // The connection with a rank has ended with that status. Any thread may call it.
  void connectionEnded(std::int32_t rank, const Status& status);
  void stop();

 private:
  struct News {
    std::int32_t rank = -1;
    std::string host;
    Status status;  // that of its connection; ok: bootstrap reported its end
  };

  struct Stop {
    bootstrap::RankStop stop;
    bool reported = false;
  };

  Watch(machine::Neighbourhood& neighbourhood, LeaveMarks& marks, WatchListener& listener,
        Options options);
  void fail(Status status);
  void run();
  void post(News news);
  void judge(const News& news);
  void peerEnded(const Peer& peer);
  // The first end that was reported, if it is another rank's and that rank did not decide to end.
  std::optional<bootstrap::RankEnd> endedBefore(std::int32_t rank);
  // Waits a moment for the report of that rank's end, and describes it.
  std::string accountOf(std::int32_t rank, std::string otherwise);
  // Waits until something happens or until the next tick, and fills readable_. False if it can no
  // longer wait.
  bool await();
  void lookForStopped();
  bool stopRequested(int milliseconds);

  machine::Neighbourhood& neighbourhood_;
  LeaveMarks& marks_;
  WatchListener& listener_;
  const std::int32_t me_;
  const bool stopsReported_;
  const Lost lost_;
  std::vector<std::int32_t> locals_;   // the ranks that are judged by their pidfd
  std::vector<Peer> peers_;            // only the thread uses it
  std::vector<int> readable_;          // descriptors; only the thread uses it
  std::map<int, Standstill> stopped_;  // by local rank: what was reported; only the thread uses it
  UniqueFd epoll_;                     // the two below, and the peers' pidfds
  UniqueFd stopEvent_;                 // eventfd: stop requested
  UniqueFd newsEvent_;                 // eventfd: there is something in news_
  Mutex mutex_;
  std::map<std::int32_t, bootstrap::RankEnd> accounts_ GUARDED_BY(mutex_);
  std::int32_t firstReported_ GUARDED_BY(mutex_) = -1;  // the rank whose end was reported first
  std::vector<News> news_ GUARDED_BY(mutex_);
  // The ranks that are stopped, as bootstrap reports.
  std::map<std::int32_t, Stop> stops_ GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace farandole::conductor
