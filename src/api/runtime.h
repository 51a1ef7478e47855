// Runtime: this rank's part in one epoch of the job: from init to shutdown.
//
// Thread-safe. Made and ended by Library; whoever uses it meanwhile holds a shared_ptr.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/clock.h"
#include "base/config.h"
#include "bootstrap/agent_client.h"
#include "collective/shm/neighbourhood.h"
#include "conductor/conductor.h"
#include "conductor/watch.h"

namespace farandole {

class Runtime {
 public:
  // Collective over all ranks. agent: null for a rank that was not started by an agent; outlives
  // the runtime.
  static Result<std::shared_ptr<Runtime>> start(const Config& config, std::uint64_t epoch,
                                                AgentClient* agent, Timeline& timeline,
                                                Deadline deadline);

  const Config& config() const { return config_; }
  std::uint64_t epoch() const { return epoch_; }
  Conductor& conductor() { return *conductor_; }
  Arena& arena() { return neighbourhood_->arena(); }

  // A set as this rank knows it; me < 0: not a member.
  struct SetInfo {
    std::vector<std::int32_t> ranks;
    int me = -1;
  };
  // Ranks in any order. Collective over the members.
  Result<std::int32_t> addSet(std::vector<std::int32_t> ranks);
  Status removeSet(std::int32_t id);
  std::shared_ptr<const SetInfo> set(std::int32_t id) const;  // null: no such set
  std::vector<std::int32_t> setIds() const;

  // An account of a rank's end, from the agent.
  void rankEnded(const RankEnd& end);

  // Ends everything in flight and leaves. Whoever still holds the runtime may go on to call it:
  // every operation fails, the arena stays.
  void stop();

  // Only in a fork child: closes every descriptor without touching a lock.
  void closeAfterFork();

 private:
  Runtime(const Config& config, std::uint64_t epoch, AgentClient* agent, Timeline& timeline);
  Status join(Deadline deadline);
  Status makeSet(std::int32_t id, const SetInfo& info, const std::string& key, Deadline deadline);
  // Where the set's shared memory lies: made by its first member, told to the others.
  Result<void*> areaOf(const SetInfo& info, std::size_t bytes, const std::string& key,
                       Deadline deadline);

  const Config config_;
  const std::uint64_t epoch_;
  AgentClient* const agent_;
  Timeline& timeline_;
  std::unique_ptr<Neighbourhood> neighbourhood_;
  std::vector<pid_t> pids_;
  std::unique_ptr<Conductor> conductor_;
  std::mutex watchMutex_;
  std::unique_ptr<Watch> watch_;  // guarded by watchMutex_: accounts come from the agent's thread

  mutable std::mutex mutex_;
  // Guarded by mutex_.
  std::map<std::int32_t, std::shared_ptr<const SetInfo>> sets_;
  std::map<std::vector<std::int32_t>, int> instances_;  // how often a set of these ranks was made
  std::int32_t nextSet_ = 1;
};

}  // namespace farandole
