// BootstrapStore: the values and the fences of a job, without sockets: requests come in, answers go
// out through a function, at once or when the time has come. The agent keeps one, or rank 0 where
// there is no agent.
//
// Values are written once. A request that waits is answered early with kPeerLost when a rank ends
// abnormally; so are later requests that would have to wait. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/wire.h"

namespace farandole::bootstrap {

class BootstrapStore {
 public:
  // value: of a get, empty otherwise. Must not call back into the rendezvous.
  using Reply =
      std::function<void(int rank, std::uint64_t id, const Status& status, std::string_view value)>;
  BootstrapStore(int size, Reply reply);

  // Each is answered exactly once, unless forget() comes first. 0 <= rank < size; ids are unique
  // among a rank's waiting requests.
  void put(int rank, std::uint64_t id, wire::Put request);
  void get(int rank, std::uint64_t id, wire::Get request);
  void fence(int rank, std::uint64_t id, wire::Fence request);
  // The rank's deadline has come: its waiting request is withdrawn and answered with kTimeout and
  // what it was waiting for. Nothing if it was answered already.
  void cancel(int rank, std::uint64_t id);
  // The rank's connection is gone: withdraws its waiting requests without an answer.
  void forget(int rank);
  void rankEnded(const RankEnd& end);

  const std::vector<RankEnd>& abnormalEnds() const { return abnormal_; }
  std::size_t waiting() const { return waiting_.size(); }

  static bool abnormal(const RankEnd& end) {
    return end.signalled || end.hostLost || end.code != 0;
  }

 private:
  struct Entry {
    int writer = -1;
    std::string value;
  };
  struct FenceState {
    std::uint32_t count = 0;
    std::map<int, std::uint64_t> arrived;  // rank → its request
  };
  using RequestId = std::pair<int, std::uint64_t>;
  struct Waiting {
    bool isFence = false;
    std::string key;
  };

  void answer(RequestId request, const Status& status, std::string_view value = {});
  bool mayWait(RequestId request);
  void withdraw(RequestId request, const Waiting& waiting);
  // Answers everyone at the fence with the status (ok: it is complete) and removes it.
  void closeFence(const std::string& key, const Status& status);
  // kPeerLost if ranks that have ended make `state` impossible to complete.
  Status reachable(const FenceState& state) const;
  std::string missing(const FenceState& state) const;

  const int size_;
  const Reply reply_;
  std::map<std::string, Entry> store_;
  std::size_t stored_ = 0;  // bytes of keys and values
  std::map<std::string, std::vector<RequestId>> gets_;
  std::map<std::string, FenceState> fences_;
  std::map<RequestId, Waiting> waiting_;
  std::vector<std::size_t> waitingOf_;  // by rank
  std::vector<RankEnd> abnormal_;
  std::map<int, RankEnd> ended_;
};

}  // namespace farandole::bootstrap
