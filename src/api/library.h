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
#include "base/mutex.h"
#include "base/status.h"
#include "bootstrap/agent_client.h"
#include "observe/timeline.h"
#include "runtime/identity.h"
#include "runtime/mpi_start.h"
#include "runtime/runtime.h"

namespace farandole::api {

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
  std::shared_ptr<runtime::Runtime> runtime() const;
  // The same, or the error to return.
  Result<std::shared_ptr<runtime::Runtime>> requireRuntime() const;
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
    std::shared_ptr<runtime::Runtime> retired;
    bool shared = false;
  };

  Library() = default;
  Status end(const std::shared_ptr<runtime::Runtime>& ending) REQUIRES(lifeMutex_);
  // The user keeps the shared memory of a runtime that has ended, out of the other ranks' sight.
  Status retireMemory(const std::shared_ptr<runtime::Runtime>& ending);
  Status connectBootstrap(runtime::Identity& identity, Deadline deadline) REQUIRES(lifeMutex_);
  void listenTo(std::unique_ptr<bootstrap::Bootstrap> bootstrap);
  static void afterForkInChild();
  static void atExit();

  Mutex lifeMutex_;  // held through init and shutdown: one at a time
  mutable Mutex mutex_;
  std::shared_ptr<runtime::Runtime> runtime_ GUARDED_BY(mutex_);
  std::map<const void*, Allocation> allocations_ GUARDED_BY(mutex_);
  // Of the MPI that started this rank, if one did.
  std::unique_ptr<collective::Engine> engine_ GUARDED_BY(lifeMutex_);
  std::atomic<collective::Engine*> mpi_{nullptr};  // the same, for the bootstrap's thread
  Config mpiConfig_ GUARDED_BY(lifeMutex_);        // who this rank is then
  // Set by the first init, before there is a runtime whose users may look at it; then it stays:
  // init and shutdown repeat quickly.
  std::unique_ptr<bootstrap::Bootstrap> bootstrap_;

  Mutex stopsMutex_;  // before mutex_; held while the runtime is told
  // What the agent has said last of each rank, for the next runtime.
  std::map<std::int32_t, bootstrap::RankStop> stops_ GUARDED_BY(stopsMutex_);

  std::atomic<std::uint64_t> epoch_{0};
  HandleTable handles_;

  Mutex timelineMutex_;
  observe::Timeline timeline_;
  std::string timelinePath_ GUARDED_BY(timelineMutex_);
  // Under which the ranks tell each other that they have started and stopped.
  std::string timelineKey_ GUARDED_BY(timelineMutex_);
  Config timelineConfig_ GUARDED_BY(timelineMutex_);
  int timelines_ GUARDED_BY(timelineMutex_) = 0;
};

}  // namespace farandole::api
