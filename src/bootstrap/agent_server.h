// AgentServer: the agent's side of bootstrap on one machine: the key-value store and the fences of
// the job's ranks, behind an abstract unix socket with an unguessable name.
//
// A visitor is admitted only with the same user id and the job's secret (crypto/handshake.h);
// strangers cost a bounded number of descriptors and never disturb a rank. A closed connection says
// nothing about its rank's life: only rankEnded() does. The server owns one thread; all public
// methods may be called from any thread. In a fork child the destructor only lets go.
//
// A job on several machines has one server on each. The first keeps the store; the others are
// relays: what their ranks say goes to the first, what it answers comes back, as whole frames.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "bootstrap/bootstrap.h"

namespace farandole::bootstrap {

class AgentServer {
 public:
  struct Options {
    std::string job;                    // at most 256 bytes
    std::string secret;                 // hexadecimal, at least 16 bytes' worth
    int size = 1;                       // ranks of the job
    std::string host;                   // how this machine is called in messages
    std::vector<int> remoteRanks = {};  // those that other machines' servers speak for
    // Called on the server's thread, with a whole frame. toFirst makes this server a relay; toOther
    // is the first one's, for remoteRanks.
    std::function<void(int rank, std::string frame)> toFirst = nullptr;
    std::function<void(int rank, std::string frame)> toOther = nullptr;
  };
  static Result<std::unique_ptr<AgentServer>> start(Options options);
  ~AgentServer();
  AgentServer(const AgentServer&) = delete;
  AgentServer& operator=(const AgentServer&) = delete;

  // For FARANDOLE_AGENT: "@" and the socket's name in the abstract namespace.
  std::string address() const;

  // A rank's process has ended. An abnormal end (signal, or code other than 0) is reported to all
  // connected ranks and to those that connect later, and fails what they wait for; a normal one
  // fails only fences that can no longer be complete.
  void rankEnded(const RankEnd& end);

  // All other ranks hear when the process of a connected rank stands still, and when it continues.
  // Not while the owner of the server itself has stopped all ranks.
  void lookForStopped(bool look);

  // What came from the other machine: on the first server a frame of the rank's, on a relay an
  // answer for it. Bytes that are no frame are dropped.
  void relay(int rank, std::string frame);

  // What rank i has reported so far. All booleans except shutDown stay true once they are.
  struct RankReport {
    bool connected = false;    // has passed the handshake
    bool initialised = false;  // has reported "initialised …"
    bool shutDown = false;     // has reported "shut down …" after its last "initialised"
    int size = -1;             // the job's size as this rank believes it; -1: not known
    std::string what;          // its last report, or why it was refused
  };
  std::vector<RankReport> reports() const;

 private:
  class Loop;
  explicit AgentServer(std::unique_ptr<Loop> loop);
  std::unique_ptr<Loop> loop_;
  pid_t owner_;
};

}  // namespace farandole::bootstrap
