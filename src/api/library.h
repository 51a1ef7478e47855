// Library: what a process has once: the current runtime, the handles, the memory given to the user,
// and the connection with bootstrap.
//
// It is never destroyed, because threads of the program may call it while the process exits.
// Thread-safe.
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

  // Ok if it is already initialised. timeout: zero means the configured one.
  Status init(std::chrono::milliseconds timeout);
  // Ok if it is not initialised.
  Status shutdown();
  // Ends what is in flight. The exit status of the process decides how the rank leaves.
  Status endWithProcess(bool failing);
  // Null unless initialised.
  std::shared_ptr<runtime::Runtime> runtime() const;
  // Returns the same, or the error for the caller.
  Result<std::shared_ptr<runtime::Runtime>> requireRuntime() const;
  std::uint64_t epoch() const { return epoch_.load(std::memory_order_relaxed); }

  Result<void*> allocate(std::size_t bytes);
  Status free(void* memory);
  bool isShared(const void* memory, std::size_t bytes) const;

  HandleTable& handles() { return handles_; }
  // All ranks of a machine write one file, which local rank 0 creates and completes.
  Status startTimeline(const std::string& path, const Config& config);
  // Ok if there is no timeline.
  Status stopTimeline();

  // Returns kForked in a fork child, otherwise ok. Everything else is called only if this is ok.
  static Status checkProcess();

 private:
  // Memory given to the user. It is shared now, left over from a runtime that has ended, or
  // ordinary.
  struct Allocation {
    std::size_t bytes = 0;
    std::shared_ptr<runtime::Runtime> retired;
    bool shared = false;
  };

  Library() = default;
  Status end(const std::shared_ptr<runtime::Runtime>& ending) REQUIRES(lifeMutex_);
  // The user keeps the shared memory of a runtime that has ended. Other ranks cannot see it any
  // more.
  Status retireMemory(const std::shared_ptr<runtime::Runtime>& ending);
  Status connectBootstrap(runtime::Identity& identity, Deadline deadline) REQUIRES(lifeMutex_);
  void listenTo(std::unique_ptr<bootstrap::Bootstrap> bootstrap);
  static void afterForkInChild();
  static void atExit();

  Mutex lifeMutex_;  // held through init and shutdown: one at a time
  mutable Mutex mutex_;
  std::shared_ptr<runtime::Runtime> runtime_ GUARDED_BY(mutex_);
  std::map<const void*, Allocation> allocations_ GUARDED_BY(mutex_);
  // The engine of the MPI that started this rank, if one did.
  std::unique_ptr<collective::Engine> engine_ GUARDED_BY(lifeMutex_);
  std::atomic<collective::Engine*> mpi_{nullptr};  // the same, for the bootstrap's thread
  Config mpiConfig_ GUARDED_BY(lifeMutex_);        // who this rank is in that case
  // Set by the first init, before there is a runtime whose users may read it. After that it stays,
  // because init and shutdown may follow each other quickly.
  std::unique_ptr<bootstrap::Bootstrap> bootstrap_;

  Mutex stopsMutex_;  // taken before mutex_, and held while the runtime gets a report
  // What bootstrap has last reported of each rank, for the next runtime.
  std::map<std::int32_t, bootstrap::RankStop> stops_ GUARDED_BY(stopsMutex_);

  std::atomic<std::uint64_t> epoch_{0};
  HandleTable handles_;

  Mutex timelineMutex_;
  observe::Timeline timeline_;
  std::string timelinePath_ GUARDED_BY(timelineMutex_);
  // The bootstrap key under which the ranks announce that they have started and stopped.
  std::string timelineKey_ GUARDED_BY(timelineMutex_);
  Config timelineConfig_ GUARDED_BY(timelineMutex_);
  int timelines_ GUARDED_BY(timelineMutex_) = 0;
};

}  // namespace farandole::api
