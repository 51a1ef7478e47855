// RankGroup: the ranks of one contender, alive for the whole benchmark, each asleep in read() until
// the driver sends a command; so an idle MPI rank does not spin while another contender is
// measured.
//
// The driver owns the group; single-threaded. The processes are started once: forked copies of this
// program, a launcher (mpirun), or one program per rank. They find the driver by an abstract unix
// socket (peers/peer_wire.h), where only processes of the same user are let in, or, if there are
// ranks on other machines, by TCP and a random token. Destruction ends them: closing the sockets
// asks them to leave, and what is left after a moment is killed.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"
#include "bench/job.h"

namespace farandole::bench {

struct GroupSpec {
  std::string name;
  int ranks = 2;
  std::vector<int> processors;                     // empty: ranks are not pinned
  std::vector<std::vector<std::string>> commands;  // started once each; or
  std::function<int(int rank)> body;               // forked once per rank, returns its exit code
  std::vector<std::pair<std::string, std::string>> environment;
  std::string address;         // of this machine, for ranks elsewhere; empty: all are here
  std::shared_ptr<void> keep;  // lives until the processes have ended
};

class RankGroup {
 public:
  // Starts the ranks and waits until all are ready. The error carries the last lines they printed.
  static Result<std::unique_ptr<RankGroup>> start(GroupSpec spec, Deadline deadline);
  ~RankGroup();
  RankGroup(const RankGroup&) = delete;
  RankGroup& operator=(const RankGroup&) = delete;

  const std::string& name() const { return spec_.name; }
  // Seconds per operation, of the slowest rank. After a failure the group is of no more use.
  Result<double> run(const Job& job, Deadline deadline);

 private:
  struct Rank {
    UniqueFd socket;
    std::string received;  // bytes after the last whole line
    std::string offer;
    bool ready = false;
  };

  explicit RankGroup(GroupSpec spec) : spec_(std::move(spec)) {}
  Status listen();
  Status listenHere();
  Status listenOutside();
  Result<bool> admit(Rank newcomer, const Deadline& deadline);
  Status spawn();
  void becomeChild(int rank, const std::vector<std::string>* command);
  Status acceptAll(const Deadline& deadline);
  Status handshake(const Deadline& deadline);
  Status answerOffers();
  Status send(const Rank& rank, std::string line);
  Result<std::string> receive(Rank& rank, const Deadline& deadline);
  // Polls the fd in slices; fails when a process of ours has ended or the deadline has passed.
  Status awaitReadable(int fd, const Deadline& deadline);
  Status checkAlive();
  Status withOutput(Status status) const;
  void end();

  GroupSpec spec_;
  std::string socketName_;  // FARANDOLE_BENCH_SOCKET
  std::string token_;       // what ranks elsewhere show
  UniqueFd listener_;
  UniqueFd output_;  // what the processes print
  std::vector<pid_t> processes_;
  std::vector<Rank> ranks_;
};

}  // namespace farandole::bench
