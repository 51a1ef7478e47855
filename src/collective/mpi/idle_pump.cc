#include "collective/mpi/idle_pump.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/mutex.h"
#include "base/thread.h"
#include "collective/mpi/process.h"

namespace farandole::collective::mpi {
namespace {

using std::chrono::milliseconds;

// An idle rank calls MPI fifty times a second; one that has just worked, a thousand times.
constexpr Duration kShortest = milliseconds(1);
constexpr Duration kLongest = milliseconds(20);

// Never deleted: used until the very end of the process.
struct PumpState {
  Mutex mutex;
  Condition changed;
  bool stopping GUARDED_BY(mutex) = false;
  std::thread thread GUARDED_BY(mutex);
  // The process that started the thread. Read without the mutex: in a forked child it may never be
  // released.
  std::atomic<pid_t> owner{0};
};
PumpState& pumpState() {
  static auto* const made = new PumpState;
  return *made;
}

// MPI_Finalize begins with what is attached to MPI_COMM_SELF.
int pumpAtFinalize(MPI_Comm, int, void*, void*) {
  IdlePump::stop();
  return MPI_SUCCESS;
}

}  // namespace

Status IdlePump::start(MPI_Comm comm) {
  PumpState& mine = pumpState();
  const MutexLock lock(mine.mutex);
  if (mine.thread.joinable() || mine.stopping) return {};
  {
    const MpiProcess::Lock serial;
    int key = MPI_KEYVAL_INVALID;
    FARANDOLE_RETURN_IF_ERROR(
        mpiStatus(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, pumpAtFinalize, &key, nullptr),
                  "MPI_Comm_create_keyval"));
    FARANDOLE_RETURN_IF_ERROR(
        mpiStatus(MPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr), "MPI_Comm_set_attr"));
  }
  mine.owner = getpid();
  auto thread = startThread("fd-mpi-idle", [comm] { run(comm); });
  FARANDOLE_RETURN_IF_ERROR(thread.status());
  mine.thread = std::move(thread).value();
  return {};
}

void IdlePump::stop() {
  PumpState& mine = pumpState();
  if (mine.owner != getpid()) return;  // a forked child has no such thread
  std::thread ended;
  {
    const MutexLock lock(mine.mutex);
    mine.stopping = true;
    ended = std::move(mine.thread);
  }
  mine.changed.notifyAll();
  if (ended.joinable()) ended.join();
}

bool IdlePump::running() {
  PumpState& mine = pumpState();
  const MutexLock lock(mine.mutex);
  return mine.owner == getpid() && mine.thread.joinable();
}

void IdlePump::run(MPI_Comm comm) {
  PumpState& mine = pumpState();
  std::uint64_t seen = calls_.load(std::memory_order_relaxed);
  TimePoint idleSince = Clock::now();
  MutexLock lock(mine.mutex);
  for (;;) {
    const Duration nap = std::clamp<Duration>((Clock::now() - idleSince) / 8, kShortest, kLongest);
    const Deadline deadline = Deadline::after(nap);
    while (!mine.stopping && !deadline.passed()) mine.changed.wait(mine.mutex, deadline);
    if (mine.stopping) return;
    const std::uint64_t now = calls_.load(std::memory_order_relaxed);
    if (now != seen) {
      seen = now;
      idleSince = Clock::now();
      continue;
    }
    lock.unlock();
    {
      const MpiProcess::Lock serial;
      int there = 0;
      MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &there, MPI_STATUS_IGNORE);
    }
    lock.lock();
  }
}

}  // namespace farandole::collective::mpi
