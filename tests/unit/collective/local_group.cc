#include "unit/collective/local_group.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>

namespace farandole::testing {

using collective::Progress;
using machine::Arena;
using machine::Neighbourhood;

using namespace std::chrono_literals;

struct GroupBoard {
  static constexpr int kKeys = 16;
  std::atomic<int> pids[machine::kMaxLocalRanks];
  std::atomic<bool> done[machine::kMaxLocalRanks];
  std::atomic<std::uint64_t> areas[kKeys];  // 1 + offset in the first member's arena
};

namespace {

int pidfdOf(int pid) { return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)); }

// Polls until the condition holds; a rank that never gets there ends.
template <typename Condition>
void await(Condition condition, const char* what) {
  const Deadline deadline = Deadline::after(30s);
  while (!condition()) {
    if (deadline.passed()) {
      ADD_FAILURE() << "timeout: " << what;
      ::_exit(3);
    }
    std::this_thread::sleep_for(200us);
  }
}

// Tells the neighbourhood when a rank ends that was not done.
class Watcher {
 public:
  Watcher(GroupBoard& board, Neighbourhood& neighbourhood)
      : thread_([this, &board, &neighbourhood] { watch(board, neighbourhood); }) {}
  ~Watcher() {
    stop_.store(true);
    thread_.join();
  }

 private:
  void watch(GroupBoard& board, Neighbourhood& neighbourhood) {
    std::vector<pollfd> fds;
    for (int rank = 0; rank < neighbourhood.size(); ++rank) {
      const bool own = rank == neighbourhood.rank();
      fds.push_back({own ? -1 : neighbourhood.pidfd(rank), POLLIN, 0});
    }
    while (!stop_.load()) {
      if (::poll(fds.data(), fds.size(), 5) <= 0) continue;
      for (std::size_t rank = 0; rank < fds.size(); ++rank) {
        if ((fds[rank].revents & POLLIN) == 0) continue;
        if (!board.done[rank].load()) {
          neighbourhood.fail(Status(Code::kPeerLost, "rank " + std::to_string(rank) + " ended")
                                 .withRank(static_cast<int>(rank)));
        }
        fds[rank].fd = -1;
      }
    }
  }
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

[[noreturn]] void runRank(int me, GroupBoard& board, std::vector<std::unique_ptr<Arena>>& arenas,
                          const std::function<void(GroupMember&)>& body) {
  const int ranks = static_cast<int>(arenas.size());
  std::vector<UniqueFd> fds;
  std::vector<UniqueFd> pidfds;
  for (int rank = 0; rank < ranks; ++rank) {
    await([&] { return board.pids[rank].load() != 0; }, "the other ranks' pids");
    fds.emplace_back(::dup(arenas[static_cast<std::size_t>(rank)]->fd()));
    pidfds.emplace_back(pidfdOf(board.pids[rank].load()));
  }
  std::unique_ptr<Arena> own = std::move(arenas[static_cast<std::size_t>(me)]);
  arenas.clear();
  auto neighbourhood = Neighbourhood::create(std::move(own), me, /*epoch=*/1, std::move(fds),
                                             std::move(pidfds), Deadline::after(30s));
  if (!neighbourhood.ok()) {
    ADD_FAILURE() << neighbourhood.status().message();
    ::_exit(2);
  }
  {
    Watcher watcher(board, **neighbourhood);
    GroupMember member(board, **neighbourhood);
    body(member);
    member.markDone();
  }
  std::fflush(nullptr);
  ::_exit(::testing::Test::HasFailure() ? 1 : 0);
}

}  // namespace

void GroupMember::markDone() { board_.done[rank()].store(true); }

int GroupMember::pidOf(int rank) const { return board_.pids[rank].load(); }

std::unique_ptr<collective::Communicator> GroupMember::communicator(std::vector<int> members,
                                                                    int key) {
  const int size = static_cast<int>(members.size());
  const std::size_t bytes = collective::shm::shmCommunicatorBytes(size);
  std::atomic<std::uint64_t>& area = board_.areas[key];
  if (members[0] == rank()) {
    Result<void*> memory = neighbourhood_.arena().allocate(bytes);
    if (!memory.ok()) ADD_FAILURE() << memory.status().message();
    area.store(neighbourhood_.offsetOf(*memory) + 1);
  }
  await([&] { return area.load() != 0; }, "the communicator's area");
  std::byte* base = neighbourhood_.at(members[0], area.load() - 1, bytes);
  const auto me = std::find(members.begin(), members.end(), rank()) - members.begin();
  return collective::shm::makeShmCommunicator(neighbourhood_, base, members, static_cast<int>(me));
}

std::unique_ptr<collective::Communicator> GroupMember::world(int key) {
  std::vector<int> members;
  for (int rank = 0; rank < size(); ++rank) members.push_back(rank);
  return communicator(std::move(members), key);
}

Status GroupMember::wait(collective::Operation& operation, std::chrono::milliseconds limit) {
  const Deadline deadline = Deadline::after(limit);
  const int spins = neighbourhood_.crowded() ? 1 : 200;
  for (;;) {
    for (int i = 0; i < spins; ++i) {
      const Progress progress = operation.progress();
      if (progress != Progress::kPending) return operation.status();
    }
    const std::uint32_t seen = neighbourhood_.announceSleep();
    const Progress progress = operation.progress();
    if (progress == Progress::kPending && !operation.moved()) {
      neighbourhood_.sleep(seen, Deadline::after(std::min<Duration>(deadline.left(1s), 1s)));
    }
    neighbourhood_.awake();
    if (progress != Progress::kPending) return operation.status();
    if (deadline.passed()) return Status::timeout("the test's limit for one operation");
  }
}

void* GroupMember::memory(std::size_t bytes, bool shared) {
  if (!shared) return std::aligned_alloc(64, (bytes + 127) / 64 * 64);
  Result<void*> result = neighbourhood_.arena().allocate(bytes + 64);
  if (!result.ok()) {
    ADD_FAILURE() << result.status().message();
    ::_exit(4);
  }
  return *result;
}

void runGroup(int ranks, const std::function<void(GroupMember&)>& body,
              const GroupOptions& options) {
  void* page = ::mmap(nullptr, sizeof(GroupBoard), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  auto* board = new (page) GroupBoard();
  std::vector<std::unique_ptr<Arena>> arenas;
  for (int rank = 0; rank < ranks; ++rank) {
    auto arena = Arena::create(options.arenaBytes);
    ASSERT_TRUE(arena.ok()) << arena.status().message();
    arenas.push_back(std::move(arena).value());
  }
  std::fflush(nullptr);
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t pid = ::fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) runRank(rank, *board, arenas, body);
    board->pids[rank].store(pid);
  }
  arenas.clear();
  const Deadline deadline = Deadline::after(options.limit);
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t pid = board->pids[rank].load();
    const bool mayDie = std::count(options.mayBeKilled.begin(), options.mayBeKilled.end(), rank);
    UniqueFd pidfd(pidfdOf(pid));
    pollfd entry{pidfd.get(), POLLIN, 0};
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline.left(1h));
    if (::poll(&entry, 1, static_cast<int>(left.count())) <= 0) {
      ADD_FAILURE() << "rank " << rank << " did not end in time";
      ::kill(pid, SIGKILL);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
    if (mayDie && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) continue;
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
        << "rank " << rank << " of " << ranks
        << (WIFSIGNALED(status) ? " was ended by signal " : " exited with ")
        << (WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
  }
  ::munmap(page, sizeof(GroupBoard));
}

}  // namespace farandole::testing
