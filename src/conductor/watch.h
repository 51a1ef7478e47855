// Watch: the thread that knows who is alive. Owns the waiting on pidfds, and turns a death into the
// failure of whatever waits, with the name of who died.
//
// Liveness is a pidfd and the agent's report, never a closed socket: fork children hold copies of
// every socket. A rank that left in good order (its leave mark is set) may end; any other end is a
// failure.
#pragma once

#include <sys/types.h>

#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "bootstrap/bootstrap.h"
#include "collective/shm/neighbourhood.h"
#include "conductor/conductor.h"

namespace farandole {

class Watch {
 public:
  struct Peer {
    std::int32_t rank = 0;
    int localRank = 0;
    std::string host;
    pid_t pid = 0;
  };

  // peers: the other ranks of this machine. Both references outlive it.
  static Result<std::unique_ptr<Watch>> start(Neighbourhood& neighbourhood, Conductor& conductor,
                                              std::vector<Peer> peers);
  ~Watch() { stop(); }

  // What the agent says of a rank's end, or that the agent itself is gone (rank -1). Any thread.
  void rankEnded(const RankEnd& end);
  void stop();

 private:
  Watch(Neighbourhood& neighbourhood, Conductor& conductor, std::vector<Peer> peers);
  void run();
  void peerEnded(const Peer& peer);
  // Waits a moment for the agent's account of it.
  std::string accountOf(const Peer& peer);
  void lookForStopped();
  bool stopRequested(int milliseconds);

  Neighbourhood& neighbourhood_;
  Conductor& conductor_;
  std::vector<Peer> peers_;      // the thread's own
  std::map<int, bool> stopped_;  // by local rank: reported as stopped; the thread's own
  UniqueFd wake_;                // eventfd: stop requested
  std::mutex mutex_;
  std::map<std::int32_t, RankEnd> accounts_;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace farandole
