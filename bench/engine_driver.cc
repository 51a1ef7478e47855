#include "bench/engine_driver.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "base/clock.h"
#include "base/futex.h"
#include "collective/shm/shm_communicator.h"

namespace farandole::bench {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr auto kStartTime = seconds(20);
constexpr auto kOperationTime = seconds(60);
constexpr auto kLivenessSlice = milliseconds(100);
constexpr int kSpins = 4000;

// The ranks are processes of one user, so a peer's unnamed memory can be opened through its file
// descriptor table; "pid:fd" is all that has to travel.
Result<UniqueFd> openPeersArena(pid_t pid, int fd) {
  UniqueFd arena(open(fmt::format("/proc/{}/fd/{}", pid, fd).c_str(), O_RDWR | O_CLOEXEC));
  if (!arena) return Status::fromErrno("cannot open a peer's arena", errno);
  return arena;
}

}  // namespace

Result<std::unique_ptr<EngineDriver>> EngineDriver::create(int rank, int size,
                                                           const Exchange& exchange) {
  auto arena = machine::Arena::create();
  if (!arena.ok()) return arena.status();
  auto addresses = exchange(fmt::format("{}:{}", getpid(), (*arena)->fd()));
  if (!addresses.ok()) return addresses.status();
  std::vector<UniqueFd> arenas;
  std::vector<UniqueFd> pidfds;
  for (const std::string& address : *addresses) {
    int pid = -1;
    int fd = -1;
    if (std::sscanf(address.c_str(), "%d:%d", &pid, &fd) != 2) {
      return Status::internal("bad address of a peer: " + address);
    }
    auto peer = openPeersArena(pid, fd);
    if (!peer.ok()) return peer.status();
    arenas.push_back(std::move(*peer));
    pidfds.emplace_back(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
    if (!pidfds.back()) return Status::fromErrno("pidfd_open", errno);
  }
  std::unique_ptr<EngineDriver> driver(new EngineDriver);
  auto neighbourhood =
      machine::Neighbourhood::create(std::move(*arena), rank, 1, std::move(arenas),
                                     std::move(pidfds), Deadline::after(kStartTime));
  if (!neighbourhood.ok()) return neighbourhood.status();
  driver->neighbourhood_ = std::move(*neighbourhood);

  // Rank 0's arena holds the communicator's shared state.
  std::string offset = "0";
  const std::size_t bytes = collective::shm::shmCommunicatorBytes(size);
  if (rank == 0) {
    auto area = driver->neighbourhood_->arena().allocate(bytes);
    if (!area.ok()) return area.status();
    offset = std::to_string(driver->neighbourhood_->offsetOf(*area));
  }
  auto offsets = exchange(offset);
  if (!offsets.ok()) return offsets.status();
  void* area = driver->neighbourhood_->at(0, std::stoull(offsets->front()), bytes);
  if (area == nullptr) return Status::internal("rank 0's area lies outside of its arena");
  std::vector<int> members;
  for (int i = 0; i < size; ++i) members.push_back(i);
  driver->communicator_ =
      collective::shm::makeShmCommunicator(*driver->neighbourhood_, area, std::move(members), rank);
  return driver;
}

Status EngineDriver::finish(collective::OperationPtr operation) {
  collective::Progress progress = operation->progress();
  if (progress == collective::Progress::kPending && !neighbourhood_->crowded()) {
    for (int i = 0; i < kSpins && progress == collective::Progress::kPending; ++i) {
      relax();
      progress = operation->progress();
    }
  }
  if (progress == collective::Progress::kPending) {
    const Deadline deadline = Deadline::after(kOperationTime);
    while ((progress = rest(*operation)) == collective::Progress::kPending) {
      FARANDOLE_RETURN_IF_ERROR(checkPeers());
      if (deadline.passed()) return Status::timeout("an operation did not end in time");
    }
  }
  return progress == collective::Progress::kDone ? Status() : operation->status();
}

// Spins again after every wake-up: an operation in many steps would otherwise sleep before each.
collective::Progress EngineDriver::rest(collective::Operation& operation) {
  const std::uint32_t seen = neighbourhood_->announceSleep();
  collective::Progress progress = operation.progress();
  if (progress == collective::Progress::kPending) {
    neighbourhood_->sleep(seen, Deadline::after(kLivenessSlice));
  }
  neighbourhood_->awake();
  const int spins = neighbourhood_->crowded() ? 1 : kSpins;
  for (int i = 0; i < spins && progress == collective::Progress::kPending; ++i) {
    progress = operation.progress();
    relax();
  }
  return progress;
}

Status EngineDriver::checkPeers() {
  for (int rank = 0; rank < neighbourhood_->size(); ++rank) {
    pollfd ended{neighbourhood_->pidfd(rank), POLLIN, 0};
    if (poll(&ended, 1, 0) > 0) {
      Status status(Code::kPeerLost, fmt::format("rank {} has ended", rank));
      neighbourhood_->fail(status.withRank(rank));
      return status;
    }
  }
  return {};
}

}  // namespace farandole::bench
