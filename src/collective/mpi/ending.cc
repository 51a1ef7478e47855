#include "collective/mpi/ending.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "collective/mpi/call_limit.h"
#include "collective/mpi/headers.h"
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
// By then the report to the other ranks was sent.
constexpr auto kLastWords = milliseconds(100);

// Never deleted: used until the very end of the process.
struct State {
  std::atomic<bool> lost{false};
  std::atomic<bool> ours{false};  // we have called MPI_Finalize
  std::atomic<bool> over{false};  // and it has returned
  Mutex mutex;
  std::string why GUARDED_BY(mutex);
  TimePoint since GUARDED_BY(mutex){};
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

// Not joined: it lives until the end of the process.
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

constexpr std::size_t kLongestAnswer = 1024;

// "MPICH Version:      4.0.2": 400; 0 if there is none.
int versionOf(std::string_view text) {
  constexpr std::string_view kName = "MPICH Version:";
  const auto name = text.find(kName);
  if (name == std::string_view::npos) return 0;
  const auto digit = text.find_first_of("0123456789", name + kName.size());
  if (digit == std::string_view::npos) return 0;
  const char* const end = text.data() + text.size();
  int major = 0;
  const auto [dot, error] = std::from_chars(text.data() + digit, end, major);
  if (error != std::errc() || dot == end || *dot != '.') return 0;
  int minor = 0;
  if (std::from_chars(dot + 1, end, minor).ec != std::errc()) return 0;
  return major * 100 + minor;
}

// The connection to the process manager that MPICH inherits.
std::optional<int> managerFd() {
  const char* const text = std::getenv("PMI_FD");
  if (text == nullptr) return std::nullopt;
  int fd = -1;
  const auto [end, error] = std::from_chars(text, text + std::strlen(text), fd);
  if (error != std::errc() || *end != '\0' || fd < 3) return std::nullopt;
  return fd;
}

// Says a line and waits for one; whether it begins as expected.
bool converse(int fd, std::string_view say, std::string_view expect, Deadline deadline) {
  while (!say.empty()) {
    const ssize_t sent = write(fd, say.data(), say.size());
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    say.remove_prefix(static_cast<std::size_t>(sent));
  }
  std::string answer;
  while (answer.size() < kLongestAnswer) {
    pollfd ready{fd, POLLIN, 0};
    // Not longer than a second at a time, so that a signal's handler has been seen.
    const int left = static_cast<int>(
        std::chrono::ceil<std::chrono::milliseconds>(deadline.left(std::chrono::seconds(1)))
            .count());
    const int found = poll(&ready, 1, left);
    if (found < 0 && errno != EINTR) return false;
    if (found <= 0) {
      if (deadline.passed()) return false;
      Ending::endIfLost();
      continue;
    }
    // A byte at a time: what follows the line is not ours.
    char letter = 0;
    const ssize_t got = read(fd, &letter, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    if (letter == '\n') return answer.starts_with(expect);
    answer += letter;
  }
  return false;
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
  const MutexLock lock(mine.mutex);
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
  State& mine = state();
  const MutexLock lock(mine.mutex);
  return mine.why;
}

void Ending::endIfLost() {
  if (!lost()) return;
  State& mine = state();
  std::string why;
  {
    const MutexLock lock(mine.mutex);
    if (Clock::now() < mine.since + kLastMessages) return;
    why = mine.why;
  }
  endProcess(why + "; MPI_Finalize would wait for it for ever, so this process ends without it");
}

// ---- Leaving an MPI whose MPI_Finalize does not return.

bool finalizeHangs(std::string_view libraryVersion) {
  const int version = versionOf(libraryVersion);
  return version > 0 && version < 402 && libraryVersion.find("ch4:ucx") != std::string_view::npos;
}

bool leaveWithoutFinalize() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  if (MPI_Get_library_version(text.data(), &length) != MPI_SUCCESS || length <= 0) return false;
  if (!finalizeHangs({text.data(), static_cast<std::size_t>(length)})) return false;
  const std::optional<int> fd = managerFd();
  if (!fd) return false;
  // As long as it takes: other ranks may have hours to go. If one is lost, the starter ends all,
  // or endIfLost this process.
  if (!converse(*fd, "cmd=barrier_in\n", "cmd=barrier_out", Deadline::never())) return false;
  converse(*fd, "cmd=finalize\n", "cmd=finalize_ack", Deadline::after(std::chrono::seconds(5)));
  return true;
}

}  // namespace farandole::collective::mpi
