// Bootstrap: how ranks find each other before they can talk: a small key-value store with a fence.
//
// Keys carry job, epoch and set, e.g. "e1/s0/header"; a value is written once. Every call has a
// deadline and fails early, naming the rank, when a rank that must take part is known to have
// ended. Thread-safe.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/process_state.h"
#include "base/status.h"

namespace farandole::bootstrap {

// A rank that has ended, as its agent saw it.
struct RankEnd {
  int rank = -1;
  std::string host;
  bool signalled = false;
  int code = 0;           // exit code, or signal number
  std::string lastLines;  // the last lines of its output, possibly empty
  bool hostLost = false;  // its end was not seen: its whole machine is unreachable
  std::string account{};  // what is known instead of all that, if not empty
};
// "rank 1 on alpha was killed by signal 9 (Killed)" / "rank 1 on alpha exited with code 3"
std::string describe(const RankEnd& end);

// A rank that stands still, or goes on, as its agent sees it.
struct RankStop {
  int rank = -1;
  std::string host;
  int pid = 0;  // 0: it is not there any more
  Standstill how = Standstill::kNone;
};
// "rank 1 on alpha (process 17) is stopped; …" / "rank 1 on alpha (process 17) runs again"
std::string describe(const RankStop& stop);

class Bootstrap {
 public:
  virtual ~Bootstrap() = default;

  virtual Status put(std::string_view key, std::string_view value, Deadline deadline) = 0;
  // Waits until someone has put it.
  virtual Result<std::string> get(std::string_view key, Deadline deadline) = 0;
  // Returns when `count` callers have reached the fence of that key.
  virtual Status fence(std::string_view key, int count, Deadline deadline) = 0;

  // Tells the agent what this rank is about, for its reports: "initialised", "shut down", "waiting
  // for …".
  virtual void report(std::string_view what) = 0;

  // Called on a thread of the bootstrap's own for each rank that ends abnormally, or whose agent is
  // lost (rank -1). Set once, before init is over; events that came before are delivered then.
  virtual void onRankEnd(std::function<void(const RankEnd&)> callback) = 0;

  // Called on the same thread for each rank that its agent finds stopped, or running again. Set
  // once, before init is over. Never called where no agent looks after the ranks.
  virtual void onRankStop(std::function<void(const RankStop&)> /*callback*/) {}

  // Only in a fork child: closes the descriptors and forgets the rest without touching a lock that
  // the parent's threads may have held. Idempotent.
  virtual void forgetAfterFork() = 0;
};

}  // namespace farandole::bootstrap
