// Watch: the thread that knows who is alive. Owns the waiting on pidfds, and turns a death into the
// failure of whatever waits, with the name of who died.
//
// Liveness on this machine is a pidfd and the agent's report, never a closed socket: fork children
// hold copies of every socket. Ranks of other machines are lost when their agent says so or their
// connection says nothing any more. A rank that left in good order (its leave mark is set) may end;
// any other end is a failure. What still waits for one that has ended after such a mark fails, too:
// the neighbourhood is told that nothing more comes from there.
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

// Whom the watch reports to: the conductor. Called by the watch's thread.
class WatchListener {
 public:
  virtual ~WatchListener() = default;
  // The job is over for this rank: everything in flight and everything later fails with that
  // status.
  virtual void fail(Status status) = 0;
  // Several times a second: that this process runs; suspended: that it did not for a while. Nobody
  // is late because of that.
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
    std::int32_t me = 0;         // this rank
    std::vector<Peer> peers;     // the other ranks of this machine
    bool stopsReported = false;  // an agent looks after the ranks: who is stopped is heard from it
    Lost lost;                   // told of a loss, after the listener; on any thread; may be empty
  };

  // The references outlive it.
  static Result<std::unique_ptr<Watch>> start(machine::Neighbourhood& neighbourhood,
                                              LeaveMarks& marks, WatchListener& listener,
                                              Options options);
  ~Watch() { stop(); }

  // What the agent says of a rank's end, or that the agent itself is gone (rank -1). Any thread.
  void rankEnded(const bootstrap::RankEnd& end);
  // What the agent says of a rank that stands still or goes on. Any thread.
  void rankStopped(const bootstrap::RankStop& stop);
  // The connection with a rank has ended like this. Any thread.
  void connectionEnded(std::int32_t rank, const Status& status);
  void stop();

 private:
  struct News {
    std::int32_t rank = -1;
    std::string host;
    Status status;  // of its connection; ok: the agent says that it has ended
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
  // The first end that was told, if it is another rank's and was no decision of that rank.
  std::optional<bootstrap::RankEnd> endedBefore(std::int32_t rank);
  // Waits a moment for the agent's account of it.
  std::string accountOf(std::int32_t rank, std::string otherwise);
  // Waits until something happens or it is time to look around; fills readable_. False: it cannot
  // wait any more.
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
  std::vector<Peer> peers_;            // the thread's own
  std::vector<int> readable_;          // descriptors that are readable; the thread's own
  std::map<int, Standstill> stopped_;  // by local rank: what was reported; the thread's own
  UniqueFd epoll_;                     // the two below, and the peers' pidfds
  UniqueFd stopEvent_;                 // eventfd: stop requested
  UniqueFd newsEvent_;                 // eventfd: there are news
  Mutex mutex_;
  std::map<std::int32_t, bootstrap::RankEnd> accounts_ GUARDED_BY(mutex_);
  std::int32_t firstReported_ GUARDED_BY(mutex_) = -1;  // whose account came first
  std::vector<News> news_ GUARDED_BY(mutex_);
  // Those that stand still, as the agent says.
  std::map<std::int32_t, Stop> stops_ GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace farandole::conductor
