// Runtime: this rank's part in one epoch of the job: from init to shutdown.
//
// Thread-safe. Made and ended by Library; whoever uses it meanwhile holds a shared_ptr.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/config.h"
#include "base/mutex.h"
#include "bootstrap/bootstrap.h"
#include "collective/engine_plugin.h"
#include "collective/gloo/gloo_loader.h"
#include "collective/shm/shared_areas.h"
#include "conductor/conductor.h"
#include "conductor/leave_marks.h"
#include "conductor/machine_bell.h"
#include "conductor/watch.h"
#include "machine/neighbourhood.h"
#include "runtime/abort_after.h"
#include "runtime/job_link.h"
#include "runtime/topology.h"

namespace farandole::runtime {

class Runtime {
 public:
  // Collective over all ranks. agent: null for a rank that is alone; engine: that
  // of the MPI that started it, or null; both outlive the runtime.
  static Result<std::shared_ptr<Runtime>> start(const Config& config, std::uint64_t epoch,
                                                bootstrap::Bootstrap* bootstrap,
                                                collective::Engine* engine,
                                                observe::Timeline& timeline, Deadline deadline);

  const Config& config() const { return config_; }
  // From what the ranks have told each other, whoever has started them.
  Topology::Cross cross() const { return topology_.crossOf(config_.rank); }
  std::uint64_t epoch() const { return epoch_; }
  conductor::Conductor& conductor() { return *conductor_; }
  machine::Arena& arena() { return neighbourhood_->arena(); }

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
  void rankEnded(const bootstrap::RankEnd& end);
  // The agent has found a rank stopped, or running again.
  void rankStopped(const bootstrap::RankStop& stop);

  // Ends everything in flight and leaves. Whoever still holds the runtime may go on to call it:
  // every operation fails, the arena stays.
  void stop();
  // Ends everything in flight without a word to the others, until stop(). False where that is not
  // possible: nothing has happened.
  bool halt();

  // Only in a fork child: closes every descriptor without touching a lock.
  void closeAfterFork();

 private:
  Runtime(const Config& config, std::uint64_t epoch, bootstrap::Bootstrap* bootstrap,
          collective::Engine* engine, observe::Timeline& timeline);
  Status join(Deadline deadline);
  // Memory shared with the others of this machine, and how to be with them.
  Status joinNeighbourhood(Deadline deadline);
  // Connections with the ranks of other machines, if there are any.
  Status joinMesh(Deadline deadline);
  Status startConducting();
  // A rank is gone: MPI is told, and given up if this rank does not end.
  void lost(const Status& status);
  Status makeSet(std::int32_t id, const SetInfo& info, const std::string& key, Deadline deadline);
  // The members of a set on this machine.
  struct Locals {
    std::vector<int> ranks;  // local ranks
    int me = 0;              // index in it
  };
  Locals localsOf(const SetInfo& info) const;
  // The shared memory of a set's members on this machine: made by the first of them, told to the
  // others.
  Result<collective::shm::SharedAreas::PartPtr> areaOf(const Locals& locals, std::size_t bytes,
                                                       const std::string& key, Deadline deadline);
  // The number by which a set's messages between machines are known: chosen by its first member.
  Result<std::uint32_t> linkKeyOf(std::int32_t id, const SetInfo& info, const std::string& key,
                                  Deadline deadline);
  // Wakes this rank's driver; any thread.
  std::function<void()> ownBell();
  // True if members of it can only be reached through the mesh.
  bool usesMesh(const SetInfo& info) const;
  // Between machines: MPI or the link.
  Result<std::unique_ptr<collective::Communicator>> outerCommunicator(
      const std::vector<std::int32_t>& ranks, int me, std::uint32_t key, Deadline deadline);
  std::unique_ptr<conductor::OrderedOperations> orderedOf(const SetInfo& info, std::uint32_t key);
  // The set's engine: shared memory, the one between machines, or both.
  Result<std::unique_ptr<collective::Communicator>> communicatorOf(const SetInfo& info,
                                                                   std::uint32_t linkKey,
                                                                   const Locals& locals,
                                                                   std::byte* area,
                                                                   Deadline deadline);

  const Config config_;
  const std::uint64_t epoch_;
  bootstrap::Bootstrap* const bootstrap_;
  collective::Engine* const engine_;  // between machines, instead of the link; may be null
  std::optional<collective::gloo::GlooEngine> gloo_;  // runs on the link
  collective::Engine* const mpi_;  // MPI in this process, whatever carries the data; may be null
  observe::Timeline& timeline_;
  std::unique_ptr<machine::Neighbourhood> neighbourhood_;
  std::unique_ptr<collective::shm::SharedAreas> areas_;
  std::vector<pid_t> pids_;  // by local rank
  Topology topology_;
  std::unique_ptr<JobLink> link_;  // null: all ranks reach each other without
  std::unique_ptr<conductor::LeaveMarks> marks_;
  std::unique_ptr<conductor::MachineBell> bell_;
  std::unique_ptr<conductor::MachineRankStates> rankStates_;
  std::unique_ptr<conductor::Conductor> conductor_;
  Mutex watchMutex_;
  std::vector<std::atomic<bool>> stopped_;  // by rank, as the agent says
  AbortAfter abortAfter_;
  std::unique_ptr<conductor::Watch> watch_
      GUARDED_BY(watchMutex_);  // accounts come from the agent's thread

  mutable Mutex mutex_;
  std::map<std::int32_t, std::shared_ptr<const SetInfo>> sets_ GUARDED_BY(mutex_);
  std::map<std::vector<std::int32_t>, int> instances_
      GUARDED_BY(mutex_);  // how often a set of these ranks was made
  std::int32_t nextSet_ GUARDED_BY(mutex_) = 1;
  std::uint32_t nextLinkKey_ GUARDED_BY(mutex_) = 0;
};

}  // namespace farandole::runtime
