// Neighbourhood: the ranks of this machine as one of them sees them: their arenas, their doorbells,
// and which of them are gone.
//
// Waiting. A rank that has nothing to do sleeps on its own doorbell (a futex word in shared memory).
// A rank that publishes something for which another one may wait calls ring() after the store.
// ring() costs one fence and one load unless that rank sleeps. The sleeper's protocol (only one
// thread of a process sleeps at a time):
//
//     seen = n.announceSleep();          // sets the bit; then look once more
//     if (nothingToDo()) n.sleep(seen, deadline);
//     n.awake();
//
// Invariants: (1) a rank's bit in `sleepers` is set before its last look and cleared after it wakes,
// by that rank only; (2) a seq_cst fence orders a publisher's store before its load of `sleepers`,
// and the sleeper's fetch_or before its last look, so that one of the two always sees the other.
//
// Failure. The watch thread calls fail() once; drivers look at failed() whenever they find nothing
// to do. The watch calls noteGone() for a rank whose process has ended after it had left: nothing
// more comes from it, so everything that still waits for it fails.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mutex.h"
#include "base/status.h"
#include "machine/arena.h"
#include "machine/sealed_word.h"

namespace farandole::machine {

inline constexpr int kMaxLocalRanks = PromiseBoard::kRanks;

// Lies at the start of local rank 0's arena: it is the first allocation of that arena.
struct alignas(64) NeighbourhoodHeader {
  static constexpr std::uint64_t kMagic = 0x46524e444c453033;  // "FRNDLE03"
  std::atomic<std::uint64_t> magic;
  std::atomic<std::uint64_t> epoch;
  alignas(64) std::atomic<std::uint64_t> sleepers[kMaxLocalRanks / 64];
  struct alignas(64) Doorbell {
    std::atomic<std::uint32_t> word;
  };
  Doorbell doorbells[kMaxLocalRanks];
  // By local rank: its leave mark (conductor/leave_marks.h).
  struct alignas(64) Leave {
    SealedWord mark;
  };
  Leave leaves[kMaxLocalRanks];
  alignas(64) PromiseBoard promises;
};

class Neighbourhood {
 public:
  // arenas[i] and pidfds[i] are those of local rank i (this rank's own included; duplicates of its
  // fds are fine). Local rank 0 initialises the header; the others wait for its magic and epoch
  // until the deadline.
  static Result<std::unique_ptr<Neighbourhood>> create(std::unique_ptr<Arena> own, int me,
                                                       std::uint64_t epoch,
                                                       std::vector<UniqueFd> arenas,
                                                       std::vector<UniqueFd> pidfds,
                                                       Deadline deadline);
  ~Neighbourhood();

  int rank() const { return me_; }
  int size() const { return static_cast<int>(bases_.size()); }
  std::uint64_t epoch() const { return epoch_; }
  // True if there are more ranks here than processors that they may use together: a rank that spins
  // would take time from the rank that it waits for.
  bool crowded() const { return crowded_; }
  // True if this rank is alone, or if there are at least two processors for each rank: spinning
  // disturbs no other rank.
  bool roomy() const { return roomy_; }

  Arena& arena() { return *own_; }
  // Where an offset in that local rank's arena lies in this process; nullptr unless [offset,
  // offset+bytes) is inside that arena.
  std::byte* at(int rank, std::uint64_t offset, std::uint64_t bytes) const;
  // The offset of p in this rank's own arena. Only if arena().owns(p, …).
  std::uint64_t offsetOf(const void* p) const;

  void ring(int rank);
  void ringAll();  // every rank but this one
  // Rings the ranks whose bits are set (bit r % 64 of word r / 64), with one fence and one load per
  // word.
  void ring(std::span<const std::uint64_t> ranks);
  std::uint32_t announceSleep();
  // Sleeps until this rank is rung, the deadline has passed or a signal has arrived. Returns false
  // only for a signal (EINTR).
  bool sleep(std::uint32_t seen, Deadline deadline);
  void awake();

  // Keeps the first status and wakes this process's sleeper. Any thread may call it.
  void fail(Status status);
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  Status failure() const;  // only when failed()

  // The process of that rank has ended: everything it has written is there, and nothing will
  // follow. status: for operations that still wait for it. The first one stays. Wakes this
  // process's sleeper. Any thread may call it.
  void noteGone(int rank, Status status);
  bool isGone(int rank) const {
    return gone_[static_cast<std::size_t>(rank)].load(std::memory_order_acquire);
  }
  Status goneStatus(int rank) const;  // only when isGone()
  // The number of ranks for which isGone() is true. One look shows that none has been added.
  std::uint32_t goneCount() const { return goneCount_.load(std::memory_order_acquire); }

  NeighbourhoodHeader& header() { return *header_; }
  int pidfd(int rank) const { return pidfds_[static_cast<std::size_t>(rank)].get(); }

 private:
  Neighbourhood() = default;
  Status mapArenas(std::vector<UniqueFd> arenas);
  Status makeHeader();
  Status awaitHeader(Deadline deadline);
  void shareMemory();
  void wake(int rank);

  std::unique_ptr<Arena> own_;
  int me_ = 0;
  std::uint64_t epoch_ = 0;
  bool crowded_ = false;
  bool roomy_ = false;
  std::vector<Mapping> mappings_;  // of the others' arenas
  std::vector<std::byte*> bases_;  // of all arenas, own included
  std::vector<std::size_t> sizes_;
  std::vector<UniqueFd> pidfds_;
  NeighbourhoodHeader* header_ = nullptr;
  std::atomic<bool> failed_{false};
  std::vector<std::atomic<bool>> gone_;  // by local rank
  std::atomic<std::uint32_t> goneCount_{0};
  mutable Mutex mutex_;
  Status failure_ GUARDED_BY(mutex_);
  std::vector<Status> goneStatuses_ GUARDED_BY(mutex_);  // by local rank
};

}  // namespace farandole::machine
