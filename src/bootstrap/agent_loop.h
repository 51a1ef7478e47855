// AgentServer::Loop: what the agent's thread does: visitors at the door, requests of the ranks
// inside, and news from the process that owns the server. Included by agent_server.cc and
// agent_loop.cc only.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "base/mutex.h"
#include "bootstrap/agent_server.h"
#include "bootstrap/bootstrap_store.h"
#include "bootstrap/doorkeeper.h"
#include "bootstrap/out_buffer.h"
#include "bootstrap/wire.h"

namespace farandole::bootstrap {

class AgentServer::Loop {
 public:
  static Result<std::unique_ptr<Loop>> make(const Options& options);
  ~Loop();

  // Any thread.
  const std::string& name() const { return doorkeeper_->name(); }
  void rankEnded(const RankEnd& end);
  void relay(int rank, std::string frame);
  void lookForStopped(bool look) { looks_ = look; }
  std::vector<RankReport> reports();

 private:
  struct Connection {
    UniqueFd fd;
    pid_t pid = 0;  // the rank's process; 0: not visible from here
    wire::FrameDecoder decoder;
    OutBuffer out;
    Standstill how = Standstill::kNone;
    bool broken = false;  // dropped at the end of the turn
  };

  Loop(const Options& options, std::unique_ptr<Doorkeeper> doorkeeper, UniqueFd wake);
  void run();
  void turn();
  void takeNews();
  void takeRelayed(int rank, std::string frame);
  bool isRelay() const { return toFirst_ != nullptr; }
  // Its connection is gone, or replaced.
  void forget(int rank);
  void welcome(Visitor visitor);
  // Why the visitor cannot be this rank, because another process is; empty if none is.
  std::string takenBy(int rank, pid_t visitor);
  void receive(int rank, Connection& connection, std::size_t limit);
  // False: it does not speak this protocol.
  bool handle(int rank, wire::Frame frame);
  bool serve(int rank, wire::Frame frame);
  void noteArrival(int rank, int size, const std::string& refusal);
  void noteReport(int rank, std::string text);
  void findStopped();
  void noteStop(const RankStop& stop);
  void tellStops(int rank);
  void send(int rank, std::string frame);
  void flushAll();
  void wakeUp();
  bool nobodyCame() const;

  // Constant after construction.
  const int size_;
  const std::string host_;
  std::vector<bool> remote_;  // by rank
  const std::function<void(int, std::string)> toFirst_;
  const std::function<void(int, std::string)> toOther_;
  const std::unique_ptr<Doorkeeper> doorkeeper_;  // name() is constant; the rest is the thread's
  const UniqueFd wake_;                           // eventfd

  // Used by the loop's thread only.
  BootstrapStore store_;
  std::map<int, Connection> connections_;  // by rank
  std::map<int, RankStop> stops_;          // by rank, on all machines; in the first server only
  TimePoint nextLook_;

  std::atomic<bool> looks_{true};     // it looks for ranks that stand still
  std::atomic<bool> visited_{false};  // a visitor has connected, or a report has arrived

  Mutex mutex_;
  Condition caughtUp_;
  bool stop_ GUARDED_BY(mutex_) = false;
  std::vector<RankEnd> news_ GUARDED_BY(mutex_);
  std::vector<std::pair<int, std::string>> relayed_ GUARDED_BY(mutex_);
  std::vector<RankReport> reports_ GUARDED_BY(mutex_);
  std::uint64_t asked_ GUARDED_BY(mutex_) = 0;  // calls of reports() so far
  std::uint64_t answered_ GUARDED_BY(mutex_) =
      0;  // those for which everything sent before has been read

  std::thread thread_;
};

}  // namespace farandole::bootstrap
