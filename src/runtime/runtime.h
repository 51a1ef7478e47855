// Runtime: this rank in one epoch of the job, from init to shutdown.
//
// Thread-safe. Library makes and ends it. Every other user holds a shared_ptr meanwhile.
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
  // Collective over all ranks. bootstrap: null for a rank that is alone. engine: that of the MPI
  // that started the rank, or null. Both outlive the runtime.
  static Result<std::shared_ptr<Runtime>> start(const Config& config, std::uint64_t epoch,
                                                bootstrap::Bootstrap* bootstrap,
                                                collective::Engine* engine,
                                                observe::Timeline& timeline, Deadline deadline);

  const Config& config() const { return config_; }
  // Computed from what the ranks have told each other, whatever started them.
  Topology::Cross cross() const { return topology_.crossOf(config_.rank); }
  std::uint64_t epoch() const { return epoch_; }
  conductor::Conductor& conductor() { return *conductor_; }
  machine::Arena& arena() { return neighbourhood_->arena(); }

  // A set as this rank knows it. me < 0: this rank is not a member.
  struct SetInfo {
    std::vector<std::int32_t> ranks;
    int me = -1;
  };
  // Collective over the members. The ranks may be in any order.
  Result<std::int32_t> addSet(std::vector<std::int32_t> ranks);
  Status removeSet(std::int32_t id);
  std::shared_ptr<const SetInfo> set(std::int32_t id) const;  // null: no such set
  std::vector<std::int32_t> setIds() const;

  // Bootstrap reports the end of a rank.
  void rankEnded(const bootstrap::RankEnd& end);
  // Bootstrap reports that a rank was stopped or continued.
  void rankStopped(const bootstrap::RankStop& stop);

  // Ends everything in flight and leaves. The runtime may still be called afterwards: every
  // operation fails, and the arena stays.
  void stop();
  // Ends everything in flight without telling the others, until stop() is called. False if that is
  // not possible; nothing has happened then.
  bool halt();

  // Only in a fork child: closes every descriptor without touching a lock.
  void closeAfterFork();

 private:
  Runtime(const Config& config, std::uint64_t epoch, bootstrap::Bootstrap* bootstrap,
          collective::Engine* engine, observe::Timeline& timeline);
  Status join(Deadline deadline);
  // Maps the memory that is shared with the other ranks of this machine.
  Status joinNeighbourhood(Deadline deadline);
  // Opens a port for the ranks of other machines, if there are any, and learns where they are.
  Status joinMesh(Deadline deadline);
  Status startConducting();
  // A rank is lost: tells MPI, and ends the job through MPI if this rank does not end.
  void lost(const Status& status);
  Status makeSet(std::int32_t id, const SetInfo& info, const std::string& key, Deadline deadline);
  // The members of a set on this machine.
  struct Locals {
    std::vector<int> ranks;  // local ranks
    int me = 0;              // index in it
  };
  Locals localsOf(const SetInfo& info) const;
  // Returns the shared memory of a set's members on this machine. The first of them allocates it,
  // and tells the others where it is.
  Result<collective::shm::SharedAreas::UsePtr> areaOf(const Locals& locals, std::size_t bytes,
                                                      const std::string& key, Deadline deadline);
  // Returns the number that a set's messages between machines begin with. The set's first member
  // chooses it.
  Result<std::uint32_t> linkKeyOf(std::int32_t id, const SetInfo& info, const std::string& key,
                                  Deadline deadline);
  // Returns a function that wakes this rank's driver. Any thread may call it.
  std::function<void()> ownBell();
  // True if some members can be reached only through the mesh.
  bool usesMesh(const SetInfo& info) const;
  // Makes the communicator between machines: MPI's or the link's.
  Result<std::unique_ptr<collective::Communicator>> outerCommunicator(
      const std::vector<std::int32_t>& ranks, int me, std::uint32_t key, Deadline deadline);
  std::unique_ptr<conductor::OrderedOperations> orderedOf(const SetInfo& info, std::uint32_t key);
  // Makes the set's communicator: that of shared memory, the one between machines, or both.
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
  std::unique_ptr<JobLink> link_;  // null: all ranks reach each other without it
  std::unique_ptr<conductor::LeaveMarks> marks_;
  std::unique_ptr<conductor::MachineBell> bell_;
  std::unique_ptr<conductor::MachineRankStates> rankStates_;
  std::unique_ptr<conductor::Conductor> conductor_;
  Mutex watchMutex_;
  std::vector<std::atomic<bool>> stopped_;  // by rank, as bootstrap reports
  AbortAfter abortAfter_;
  // Reports come on the thread of bootstrap.
  std::unique_ptr<conductor::Watch> watch_ GUARDED_BY(watchMutex_);

  mutable Mutex mutex_;
  std::map<std::int32_t, std::shared_ptr<const SetInfo>> sets_ GUARDED_BY(mutex_);
  // By ranks: how often a set of these was made.
  std::map<std::vector<std::int32_t>, int> instances_ GUARDED_BY(mutex_);
  std::int32_t nextSet_ GUARDED_BY(mutex_) = 1;
  std::uint32_t nextLinkKey_ GUARDED_BY(mutex_) = 0;
};

}  // namespace farandole::runtime
