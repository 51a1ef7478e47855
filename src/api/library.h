// Library: what the process has once: the current runtime, handles, memory handed to the user, the
// agent's line.
//
// It is never destroyed: threads of the program may call in while the process exits. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "api/handle_table.h"
#include "runtime/runtime.h"
#include "base/mutex.h"
#include "base/status.h"
#include "bootstrap/agent_client.h"
#include "runtime/identity.h"
#include "runtime/mpi_start.h"
#include "observe/timeline.h"

namespace farandole {

class Library {
 public:
  static Library& instance();

  // Ok if already initialised. timeout zero: the configured one.
  Status init(std::chrono::milliseconds timeout);
  // Ok if not initialised.
  Status shutdown();
  // Ends what is in flight; how the rank leaves is decided by the process's exit status.
  Status endWithProcess(bool failing);
  // Null unless initialised.
  std::shared_ptr<Runtime> runtime() const;
  // The same, or the error to return.
  Result<std::shared_ptr<Runtime>> requireRuntime() const;
  std::uint64_t epoch() const { return epoch_.load(std::memory_order_relaxed); }

  Result<void*> allocate(std::size_t bytes);
  Status free(void* memory);
  bool isShared(const void* memory, std::size_t bytes) const;

  HandleTable& handles() { return handles_; }
  // One file for all ranks of the machine; local rank 0 makes and completes it.
  Status startTimeline(const std::string& path, const Config& config);
  // Ok if there is none.
  Status stopTimeline();

  // kForked in a fork child, else ok. Everything else is only called when this is ok.
  static Status checkProcess();

 private:
  // Memory handed to the user: shared now, or left over from a runtime that has ended, or ordinary.
  struct Allocation {
    std::size_t bytes = 0;
    std::shared_ptr<Runtime> retired;
    bool shared = false;
  };

  Library() = default;
  // With lifeMutex_ held.
  Status end(const std::shared_ptr<Runtime>& ending);
  // The user keeps the shared memory of a runtime that has ended, out of the other ranks' sight.
  Status retireMemory(const std::shared_ptr<Runtime>& ending);
  Status connectAgent(Identity& identity, Deadline deadline);
  void listenTo(std::unique_ptr<Bootstrap> bootstrap);
  static void afterForkInChild();
  static void atExit();

  std::mutex lifeMutex_;  // held through init and shutdown: one at a time
  mutable Mutex mutex_;
  // Guarded by mutex_.
  std::shared_ptr<Runtime> runtime_;
  std::map<const void*, Allocation> allocations_;
  std::unique_ptr<Engine> engine_;     // of the MPI that started this rank, if one did
  std::atomic<Engine*> mpi_{nullptr};  // the same, for the bootstrap's thread
  Config mpiConfig_;                   // who this rank is then
  std::unique_ptr<Bootstrap> agent_;   // once connected it stays: init and shutdown repeat quickly

  std::mutex stopsMutex_;  // before mutex_; held while the runtime is told
  // Guarded by stopsMutex_: what the agent has said last of each rank, for the next runtime.
  std::map<std::int32_t, RankStop> stops_;

  std::atomic<std::uint64_t> epoch_{0};
  HandleTable handles_;

  std::mutex timelineMutex_;
  Timeline timeline_;
  // Guarded by timelineMutex_.
  std::string timelinePath_;
  std::string
      timelineKey_;  // under which the ranks tell each other that they have started and stopped
  Config timelineConfig_;
  int timelines_ = 0;
};

}  // namespace farandole
