#include "collective/mpi/process.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "base/mutex.h"
#include "collective/mpi/call_limit.h"
#include "collective/mpi/ending.h"
#include "collective/mpi/idle_pump.h"

namespace farandole::collective::mpi {
namespace {

using std::chrono::microseconds;

// MPI counts on two threads never being inside it at once, unless it was started with MULTIPLE.
std::atomic<bool> serialised{false};
Mutex& serialMutex() {
  static auto* mutex = new Mutex;  // used until the very end of the process
  return *mutex;
}
pid_t owner = 0;
// How many locks this thread holds: it is inside MPI.
thread_local int inside = 0;

// An MPI that meets a broken connection may end the process from within any call (Open MPI: exit),
// long before a loss that others can see. The other ranks would take this one for the cause: so it
// stays until it knows which rank is the cause, and has reported it.
[[noreturn]] void endedInside(int code) {
  const std::string who = Ending::awaitLoss();
  endProcess(who.empty() ? "MPI has ended this process from within a call"
                         : who + "; MPI has ended this process because of it",
             code);
}

// MPI writes to sockets whose other side may be gone (Open MPI without MSG_NOSIGNAL): by default
// that ends the process without a word. Inside MPI the call is to fail instead; anywhere else the
// program gets what it has not changed.
void onBrokenPipe(int) {
  if (inside > 0) return;
  ::signal(SIGPIPE, SIG_DFL);
  ::raise(SIGPIPE);
}

void outliveBrokenPipes() {
  struct sigaction now {};
  if (::sigaction(SIGPIPE, nullptr, &now) != 0 || now.sa_handler != SIG_DFL) return;
  struct sigaction ours {};
  ours.sa_handler = onBrokenPipe;
  ours.sa_flags = SA_RESTART;
  ::sigaction(SIGPIPE, &ours, nullptr);
}

// A rank that fails must not wait in MPI_Finalize for others that wait for it, nor for one that was
// lost: without it the mpirun sees an abnormal end and ends the job.
void finaliseAtExit(int code, void*) {
  if (inside > 0 && code != 0) endedInside(code);
  const bool ends = code == 0 && getpid() == owner && MpiProcess::alive() && !Ending::lost();
  const bool left = ends && IdlePump::running() && leaveWithoutFinalize();
  IdlePump::stop();
  if (ends && !left) Ending::finalize();
}

}  // namespace

Status mpiStatus(int code, std::string_view call) {
  if (code == MPI_SUCCESS) return {};
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  std::string why = "error " + std::to_string(code);
  if (MPI_Error_string(code, text.data(), &length) == MPI_SUCCESS && length > 0) {
    why.assign(text.data(), static_cast<std::size_t>(length));
    for (char& letter : why) {
      if (letter == '\n') letter = ' ';
    }
  }
  return Status::internal(std::string(call) + ": " + why);
}

bool MpiProcess::alive() {
  int started = 0;
  int ended = 0;
  MPI_Initialized(&started);
  MPI_Finalized(&ended);
  return started != 0 && ended == 0;
}

MpiProcess::Lock::Lock() NO_THREAD_SAFETY_ANALYSIS
    : held_(serialised.load(std::memory_order_relaxed)) {
  if (held_) serialMutex().lock();
  ++inside;
}

MpiProcess::Lock::~Lock() NO_THREAD_SAFETY_ANALYSIS {
  --inside;
  if (held_) serialMutex().unlock();
}

Duration napAfter(Duration waited, std::size_t bytes) {
  constexpr Duration kLongest = std::chrono::milliseconds(1);
  if (bytes == 0) {
    if (waited < microseconds(100)) return Duration::zero();
    return std::min<Duration>(waited / 8, kLongest);
  }
  // What they take at 1 GB/s, and at 100 MB/s.
  const std::chrono::nanoseconds fast(bytes);
  const std::chrono::nanoseconds slow(10 * bytes);
  if (waited < std::max<Duration>(fast, microseconds(100))) return Duration::zero();
  const Duration over = std::max<Duration>(waited - slow, Duration::zero());
  return std::min<Duration>(microseconds(20) + over / 8, kLongest);
}

Status await(MPI_Request& request, Deadline deadline, std::string_view what) {
  const TimePoint begin = Clock::now();
  for (;;) {
    int done = 0;
    {
      IdlePump::noteCall();
      const MpiProcess::Lock lock;
      FARANDOLE_RETURN_IF_ERROR(mpiStatus(MPI_Test(&request, &done, MPI_STATUS_IGNORE), what));
    }
    if (done != 0) return {};
    if (deadline.passed()) {
      const auto seconds =
          std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - begin).count();
      return Status::timeout(std::string(what) + ": waited " + std::to_string(seconds) +
                             " s for the other ranks");
    }
    if (const Duration nap = napAfter(Clock::now() - begin); nap > Duration::zero()) {
      std::this_thread::sleep_for(deadline.left(nap));
    } else {
      std::this_thread::yield();
    }
  }
}

Result<MPI_Comm> duplicate(MPI_Comm comm, Deadline deadline, std::string_view what) {
  MPI_Comm copy = MPI_COMM_NULL;
  MPI_Request request = MPI_REQUEST_NULL;
  {
    const MpiProcess::Lock lock;
    FARANDOLE_RETURN_IF_ERROR(mpiStatus(MPI_Comm_idup(comm, &copy, &request), "MPI_Comm_idup"));
  }
  FARANDOLE_RETURN_IF_ERROR(await(request, deadline, what));
  const MpiProcess::Lock lock;
  FARANDOLE_RETURN_IF_ERROR(
      mpiStatus(MPI_Comm_set_errhandler(copy, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler"));
  return copy;
}

Result<MpiProcess*> MpiProcess::start(Deadline deadline, Duration finalizeLimit) {
  static Mutex mutex;
  // Never deleted: it lives as long as MPI.
  static MpiProcess* process GUARDED_BY(mutex) = nullptr;
  const MutexLock lock(mutex);
  int ended = 0;
  MPI_Finalized(&ended);
  if (ended != 0) {
    return Status::unavailable(
        "MPI has already ended in this process (MPI_Finalize was called), and it cannot be started "
        "again");
  }
  if (process != nullptr) return process;
  auto fresh = std::unique_ptr<MpiProcess>(new MpiProcess);
  FARANDOLE_RETURN_IF_ERROR(fresh->initialise(deadline, finalizeLimit));
  process = fresh.release();
  return process;
}

Status MpiProcess::initialise(Deadline deadline, Duration finalizeLimit) {
  int running = 0;
  MPI_Initialized(&running);
  if (running == 0) {
    int provided = 0;
    const CallLimit limit(deadline, "MPI_Init",
                          "all processes that MPI's starter has started must initialise; "
                          "FARANDOLE_START_TIMEOUT (--start-timeout) sets how long they may take");
    FARANDOLE_RETURN_IF_ERROR(mpiStatus(
        MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided), "MPI_Init_thread"));
    owner = getpid();
  }
  on_exit(finaliseAtExit, nullptr);
  outliveBrokenPipes();
  FARANDOLE_RETURN_IF_ERROR(checkThreads(running == 0));
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
  describeLibrary();
  Result<MPI_Comm> copy = duplicate(MPI_COMM_WORLD, deadline, "starting the mpi engine");
  if (!copy.ok()) return copy.status();
  base_ = *copy;
  Result<MPI_Comm> last = duplicate(MPI_COMM_WORLD, deadline, "starting the mpi engine");
  if (!last.ok()) return last.status();
  return Ending::prepare(*last, finalizeLimit);
}

Status MpiProcess::pumpWhenIdle() { return concern_.empty() ? IdlePump::start(base_) : Status(); }

Status MpiProcess::checkThreads(bool ours) {
  int level = MPI_THREAD_SINGLE;
  MPI_Query_thread(&level);
  serialised.store(level != MPI_THREAD_MULTIPLE, std::memory_order_relaxed);
  if (level == MPI_THREAD_MULTIPLE) return {};
  if (level == MPI_THREAD_SERIALIZED) {
    if (!ours) {
      concern_ =
          "MPI was started with MPI_THREAD_SERIALIZED by this program: it must not call MPI while "
          "Farandole works; MPI_THREAD_MULTIPLE has no such limit";
    }
    return {};
  }
  if (ours) return Status::unavailable("this MPI allows no second thread to call it");
  return Status::unavailable(
      "this program started MPI for one thread only; start it with MPI_Init_thread(…, "
      "MPI_THREAD_MULTIPLE, …) (mpi4py: rc.thread_level = \"multiple\"), or let Farandole start "
      "it");
}

void MpiProcess::describeLibrary() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  if (MPI_Get_library_version(text.data(), &length) != MPI_SUCCESS) return;
  library_.assign(text.data(), static_cast<std::size_t>(std::max(length, 0)));
  // The first line, or what stands before the details: "Open MPI v4.1.4, package: …".
  library_.erase(std::min(library_.find_first_of(",\n"), library_.size()));
  // MPICH: "MPICH Version:      5.0.2".
  std::replace(library_.begin(), library_.end(), '\t', ' ');
  if (const auto at = library_.find(" Version:"); at != std::string::npos) library_.erase(at, 9);
  const auto twoSpaces = [](char a, char b) { return a == ' ' && b == ' '; };
  library_.erase(std::unique(library_.begin(), library_.end(), twoSpaces), library_.end());
}

}  // namespace farandole::collective::mpi
