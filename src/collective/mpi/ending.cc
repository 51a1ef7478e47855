#include "collective/mpi/ending.h"

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "base/thread.h"
#include "collective/mpi/call_limit.h"
#include "collective/mpi/process.h"

namespace farandole::collective::mpi {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A rank that has ended MPI in good order ends its connections too: what it sent before may still
// be on its way.
constexpr auto kLastMessages = seconds(2);
constexpr Duration kLongestNap = milliseconds(20);
// A lost connection is seen at once, and judged within half a second (Watch).
constexpr auto kLossKnown = seconds(2);
// What is told the others is on its way by then.
constexpr auto kLastWords = milliseconds(100);

// Never deleted: used until the very end of the process.
struct State {
  std::atomic<bool> lost{false};
  std::atomic<bool> ours{false};  // we have called MPI_Finalize
  std::atomic<bool> over{false};  // and it has returned
  std::mutex mutex;
  std::string why;    // guarded by mutex
  TimePoint since{};  // guarded by mutex
};
State& state() {
  static auto* const made = new State;
  return *made;
}

void awaitAll(MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  {
    const MpiProcess::Lock lock;
    if (MPI_Ibarrier(comm, &request) != MPI_SUCCESS) return;
  }
  const TimePoint begin = Clock::now();
  for (;;) {
    int done = 0;
    {
      const MpiProcess::Lock lock;
      if (MPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done != 0) return;
    }
    Ending::endIfLost();
    const Duration nap = std::min<Duration>((Clock::now() - begin) / 8, kLongestNap);
    std::this_thread::sleep_for(nap);
  }
}

// Open MPI says that it has ended while MPI_Finalize still waits for others. So the limit holds
// there only if the call is ours: a program's own might have returned long ago.
bool finalizeIsOver() { return state().ours.load() ? state().over.load() : !MpiProcess::alive(); }

// Not joined: it has the process's end to live.
void limitFinalize(Duration limit) {
  auto thread = startThread("fd-mpi-limit", [limit] {
    std::this_thread::sleep_for(limit);
    if (finalizeIsOver()) return;
    endProcess("MPI_Finalize has not returned for " +
               std::to_string(std::chrono::round<seconds>(limit).count()) +
               " s, though all ranks have called it");
  });
  // Without the thread there is no limit, as for every other MPI program.
  if (thread.ok()) thread->detach();
}

struct Prepared {
  MPI_Comm comm;
  Duration limit;
};

// MPI_Finalize begins with what is attached to MPI_COMM_SELF.
int atFinalize(MPI_Comm, int, void* value, void*) {
  const auto& prepared = *static_cast<Prepared*>(value);
  awaitAll(prepared.comm);
  limitFinalize(prepared.limit);
  return MPI_SUCCESS;
}

}  // namespace

Status Ending::prepare(MPI_Comm comm, Duration finalizeLimit) {
  static auto* const kept = new Prepared;
  *kept = {comm, finalizeLimit};
  int key = MPI_KEYVAL_INVALID;
  const MpiProcess::Lock lock;
  FARANDOLE_RETURN_IF_ERROR(
      mpiStatus(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, atFinalize, &key, nullptr),
                "MPI_Comm_create_keyval"));
  return mpiStatus(MPI_Comm_set_attr(MPI_COMM_SELF, key, kept), "MPI_Comm_set_attr");
}

void Ending::finalize() {
  state().ours = true;
  MPI_Finalize();
  state().over = true;
}

void Ending::rankLost(const std::string& why) {
  State& mine = state();
  const std::lock_guard lock(mine.mutex);
  if (mine.lost.load(std::memory_order_relaxed)) return;
  mine.why = why;
  mine.since = Clock::now();
  mine.lost.store(true, std::memory_order_release);
}

bool Ending::lost() { return state().lost.load(std::memory_order_acquire); }

std::string Ending::awaitLoss() {
  const Deadline deadline = Deadline::after(kLossKnown);
  while (!lost() && !deadline.passed()) std::this_thread::sleep_for(milliseconds(1));
  if (!lost()) return "";
  std::this_thread::sleep_for(kLastWords);
  const std::lock_guard lock(state().mutex);
  return state().why;
}

void Ending::endIfLost() {
  if (!lost()) return;
  State& mine = state();
  std::string why;
  {
    const std::lock_guard lock(mine.mutex);
    if (Clock::now() < mine.since + kLastMessages) return;
    why = mine.why;
  }
  endProcess(why + "; MPI_Finalize would wait for it for ever, so this process ends without it");
}

}  // namespace farandole::collective::mpi
