#include "api/library.h"

#include <pthread.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/log.h"
#include "base/reduce.h"
#include "conductor/direct_callbacks.h"

namespace farandole::api {
namespace {

std::atomic<bool> forked_{false};

// Local rank 0 waits so long for the others before it leaves the file as it is: viewers can read
// that too.
constexpr Duration kStopTimeout = std::chrono::seconds(2);

Status inCallback(const char* what) {
  return Status::invalid(std::string(what) + " cannot be called from a completion callback");
}

// A callback may run inside of a shutdown, which holds the lock of these functions.
Status outsideOfCallbacks(const char* what) {
  return conductor::DirectCallbacks::isInside() ? inCallback(what) : Status();
}

constexpr std::size_t roundUp(std::size_t bytes) { return (bytes + 64) & ~std::size_t{63}; }

}  // namespace

Library& Library::instance() {
  static Library* const library = [] {
    ::pthread_atfork(nullptr, nullptr, &Library::afterForkInChild);
    std::atexit(&Library::atExit);
    return new Library();
  }();
  return *library;
}

// Not checked: see below.
void Library::afterForkInChild() NO_THREAD_SAFETY_ANALYSIS {
  // Once: in a child of the child the numbers may belong to files of the program.
  if (forked_.exchange(true, std::memory_order_relaxed)) return;
  // Other threads of the parent may have held any lock at the moment of the fork, so none is taken:
  // the child is alone and the pointers do not change any more.
  Library& library = instance();
  if (library.runtime_) library.runtime_->closeAfterFork();
  if (library.bootstrap_) library.bootstrap_->forgetAfterFork();
}

void Library::atExit() {
  if (forked_.load(std::memory_order_relaxed)) return;
  // A program that forgets shutdown still leaves in good order when it ends in good order.
  [[maybe_unused]] const Status status = instance().shutdown();
}

Status Library::checkProcess() {
  if (!forked_.load(std::memory_order_relaxed)) return {};
  return Status(
      Code::kForked,
      "this process was forked from a rank and is not one itself: call Farandole in the rank only");
}

std::shared_ptr<runtime::Runtime> Library::runtime() const {
  const MutexLock lock(mutex_);
  return runtime_;
}

Result<std::shared_ptr<runtime::Runtime>> Library::requireRuntime() const {
  auto current = runtime();
  if (!current)
    return Status(Code::kNotInitialised, "Farandole is not initialised: call init() first");
  return current;
}

Status Library::connectBootstrap(runtime::Identity& identity, Deadline deadline) {
  Config& config = identity.config;
  if (engine_) config = mpiConfig_;
  if (!bootstrap_ && !engine_ && !identity.store && runtime::startedByMpi()) {
    auto started = runtime::startUnderMpi(config, deadline);
    FARANDOLE_RETURN_IF_ERROR(started.status());
    engine_ = std::move(started->engine);
    mpi_.store(engine_.get(), std::memory_order_release);
    mpiConfig_ = config;
    if (started->bootstrap) listenTo(std::move(started->bootstrap));
    return {};
  }
  if (bootstrap_ || (config.agent.empty() && !identity.store)) return {};
  std::unique_ptr<bootstrap::Bootstrap> bootstrap;
  if (identity.store) {
    auto met = runtime::LinkBootstrap::start(config, *identity.store, deadline);
    FARANDOLE_RETURN_IF_ERROR(met.status());
    bootstrap = std::move(met).value();
  } else {
    auto agent = bootstrap::AgentClient::connect(config.agent, config.job, config.secret,
                                                 config.rank, config.size, deadline);
    FARANDOLE_RETURN_IF_ERROR(agent.status());
    bootstrap = std::move(agent).value();
  }
  listenTo(std::move(bootstrap));
  if (config.engine != EngineChoice::kMpi || config.size == 1) return {};
  // farandole run --engine mpi: MPI carries data between machines, the agent all else.
  auto engine = runtime::startMpiBeside(config, deadline);
  FARANDOLE_RETURN_IF_ERROR(engine.status());
  engine_ = std::move(engine).value();
  mpi_.store(engine_.get(), std::memory_order_release);
  mpiConfig_ = config;
  return {};
}

void Library::listenTo(std::unique_ptr<bootstrap::Bootstrap> bootstrap) {
  const MutexLock lock(mutex_);
  bootstrap_ = std::move(bootstrap);
  // Events reach whatever runtime there is at that time.
  bootstrap_->onRankEnd([this](const bootstrap::RankEnd& end) {
    if (const auto current = runtime()) {
      current->rankEnded(end);
    } else if (collective::Engine* const mpi = mpi_.load(std::memory_order_acquire)) {
      // After shutdown: MPI has still to end.
      mpi->rankLost(bootstrap::describe(end));
    }
  });
  bootstrap_->onRankStop([this](const bootstrap::RankStop& stop) {
    const MutexLock order(stopsMutex_);
    stops_.insert_or_assign(stop.rank, stop);
    if (const auto current = runtime()) current->rankStopped(stop);
  });
}

Status Library::init(std::chrono::milliseconds timeout) {
  FARANDOLE_RETURN_IF_ERROR(outsideOfCallbacks("init"));
  const MutexLock life(lifeMutex_);
  if (runtime()) return {};
  auto identity = runtime::identify([](const char* variable) { return std::getenv(variable); });
  FARANDOLE_RETURN_IF_ERROR(identity.status());
  const Config* const config = &identity->config;
  setLogLevel(config->logLevel);
  setLogRank(config->rank);
  if (!config->simd.empty() && !setKernels(config->simd)) {
    return Status::invalid("FARANDOLE_SIMD=" + config->simd + ": this processor does not have it");
  }
  const Deadline deadline =
      Deadline::after(timeout > std::chrono::milliseconds::zero() ? timeout : config->startTimeout);
  FARANDOLE_RETURN_IF_ERROR(connectBootstrap(*identity, deadline));
  setLogRank(config->rank);
  const std::uint64_t epoch = epoch_.fetch_add(1, std::memory_order_relaxed) + 1;
  auto started =
      runtime::Runtime::start(*config, epoch, bootstrap_.get(), engine_.get(), timeline_, deadline);
  FARANDOLE_RETURN_IF_ERROR(started.status());
  {
    const MutexLock order(stopsMutex_);
    {
      const MutexLock lock(mutex_);
      runtime_ = *started;
    }
    for (const auto& [rank, stop] : stops_) (*started)->rankStopped(stop);
  }
  if (bootstrap_) bootstrap_->report("initialised size=" + std::to_string(config->size));
  if (config->timeline.empty()) return {};
  Status status = startTimeline(config->timeline, *config);
  // Half an init would be worse than none.
  if (!status.ok()) FARANDOLE_RETURN_IF_ERROR(end(*started));
  return status;
}

Status Library::shutdown() {
  FARANDOLE_RETURN_IF_ERROR(outsideOfCallbacks("shutdown"));
  const MutexLock life(lifeMutex_);
  const std::shared_ptr<runtime::Runtime> ending = runtime();
  return ending ? end(ending) : Status();
}

Status Library::endWithProcess(bool failing) {
  // Registered as late as this, it runs before everything else at exit: before MPI is finalised.
  static const int registered = ::on_exit(
      [](int status, void*) {
        if (forked_.load(std::memory_order_relaxed) || !instance().runtime()) return;
        // What the process's parent will see.
        if ((status & 0xff) == 0) return atExit();
        std::fflush(nullptr);
        ::_exit(status);
      },
      nullptr);
  FARANDOLE_RETURN_IF_ERROR(outsideOfCallbacks("end_with_process"));
  const MutexLock life(lifeMutex_);
  const std::shared_ptr<runtime::Runtime> ending = runtime();
  if (!ending) return {};
  if (ending->conductor().inCallback()) return inCallback("end_with_process");
  if (registered != 0 || ending->config().size == 1) return end(ending);
  if (!ending->conductor().anythingInFlight()) return {};
  // What MPI or connections carry ends only with a good-bye.
  if (!engine_ && ending->halt()) return retireMemory(ending);
  return failing ? Status() : end(ending);
}

Status Library::end(const std::shared_ptr<runtime::Runtime>& ending) {
  if (ending->conductor().inCallback()) {
    return inCallback("shutdown");
  }
  if (const Status status = stopTimeline(); !status.ok()) logWarning(status.message());
  // First out of reach for new calls, then ended.
  {
    const MutexLock lock(mutex_);
    runtime_ = nullptr;
  }
  ending->stop();
  if (bootstrap_) bootstrap_->report("shut down");
  return retireMemory(ending);
}

Status Library::retireMemory(const std::shared_ptr<runtime::Runtime>& ending) {
  const MutexLock lock(mutex_);
  bool held = false;
  for (auto& [memory, allocation] : allocations_) {
    if (!allocation.shared) continue;
    allocation.shared = false;
    allocation.retired = ending;
    held = true;
  }
  // A rank that was given up and wakes later must not write into memory that the user still holds;
  // nor may one that is not done yet see how that memory is given back.
  return held ? ending->arena().detach() : Status();
}

Result<void*> Library::allocate(std::size_t bytes) {
  const auto current = runtime();
  if (current) {
    auto memory = current->arena().allocate(bytes == 0 ? 1 : bytes);
    FARANDOLE_RETURN_IF_ERROR(memory.status());
    const MutexLock lock(mutex_);
    allocations_[*memory] = {bytes, nullptr, true};
    return *memory;
  }
  void* memory = std::aligned_alloc(64, roundUp(bytes));
  if (memory == nullptr)
    return Status::outOfMemory("no memory for " + std::to_string(bytes) + " bytes");
  std::memset(memory, 0, roundUp(bytes));
  const MutexLock lock(mutex_);
  allocations_[memory] = {bytes, nullptr, false};
  return memory;
}

Status Library::free(void* memory) {
  if (memory == nullptr) return {};
  Allocation allocation;
  std::shared_ptr<runtime::Runtime> current;
  {
    const MutexLock lock(mutex_);
    const auto found = allocations_.find(memory);
    if (found == allocations_.end()) {
      return Status::invalid(
          "this memory did not come from farandole_allocate, or was freed before");
    }
    allocation = std::move(found->second);
    allocations_.erase(found);
    current = runtime_;
  }
  if (allocation.shared && current) {
    current->arena().free(memory);
  } else if (allocation.retired) {
    allocation.retired->arena().free(memory);
  } else {
    std::free(memory);
  }
  return {};
}

bool Library::isShared(const void* memory, std::size_t bytes) const {
  const auto current = runtime();
  return current && current->arena().owns(memory, bytes);
}

// The timeline: one file per machine (FILE, FILE.machine1, …), which local rank 0 makes before the
// others write and completes when they have stopped.
Status Library::startTimeline(const std::string& path, const Config& config) {
  const MutexLock lock(timelineMutex_);
  if (timeline_.enabled())
    return Status::invalid("a timeline is already being written to " + timelinePath_);
  timelineKey_ = "timeline/" + std::to_string(epoch()) + "/" + std::to_string(timelines_++) + "/" +
                 std::to_string(config.machine);
  // Machines may share a file system.
  timelinePath_ = config.machine == 0 ? path : path + ".machine" + std::to_string(config.machine);
  timelineConfig_ = config;
  const Deadline deadline = Deadline::after(config.startTimeout);
  Status made;
  if (config.localRank == 0) {
    made = observe::Timeline::createFile(timelinePath_);
    // The others learn of a failure too: nobody waits for a file that will not come.
    if (bootstrap_)
      FARANDOLE_RETURN_IF_ERROR(
          bootstrap_->put(timelineKey_, made.ok() ? "" : made.message(), deadline));
  } else {
    auto told = bootstrap_->get(timelineKey_, deadline);
    FARANDOLE_RETURN_IF_ERROR(told.status());
    if (!told->empty()) made = Status::unavailable(*told);
  }
  FARANDOLE_RETURN_IF_ERROR(made);
  return timeline_.start(timelinePath_, config.rank, config.host,
                         static_cast<std::size_t>(config.timelineBytes));
}

Status Library::stopTimeline() {
  const MutexLock lock(timelineMutex_);
  if (!timeline_.enabled()) return {};
  FARANDOLE_RETURN_IF_ERROR(timeline_.stop());
  const Deadline deadline = Deadline::after(kStopTimeout);
  if (timelineConfig_.localRank != 0) {
    return bootstrap_->put(timelineKey_ + "/" + std::to_string(timelineConfig_.localRank), "",
                           deadline);
  }
  for (int i = 1; i < timelineConfig_.localSize; ++i) {
    if (!bootstrap_->get(timelineKey_ + "/" + std::to_string(i), deadline).ok()) return {};
  }
  return observe::Timeline::closeFile(timelinePath_);
}

}  // namespace farandole::api
