#include "machine/neighbourhood.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <new>
#include <string>

#include "base/futex.h"
#include "base/mutex.h"
#include "machine/rank_processors.h"

namespace farandole::machine {
namespace {

static_assert(std::atomic<std::uint64_t>::is_always_lock_free &&
                  std::atomic<std::uint32_t>::is_always_lock_free,
              "atomics are shared between processes");

// A full memory fence that also compiles under ThreadSanitizer: it does not model fences, but what
// ours order is memory of several processes, which it cannot see anyway.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wtsan"
#endif
void fullFence() { std::atomic_thread_fence(std::memory_order_seq_cst); }
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

// A sleeper looks around this often even if nobody rings: a belt to the braces of ring().
constexpr Duration kLongestSleep = std::chrono::seconds(1);

// Ended, as far as its pidfd tells. Waits up to `milliseconds` for it.
bool endedWithin(int pidfd, int milliseconds) {
  pollfd entry{pidfd, POLLIN, 0};
  return ::poll(&entry, 1, milliseconds) > 0 && (entry.revents & POLLIN) != 0;
}

}  // namespace

Result<std::unique_ptr<Neighbourhood>> Neighbourhood::create(std::unique_ptr<Arena> own, int me,
                                                             std::uint64_t epoch,
                                                             std::vector<UniqueFd> arenas,
                                                             std::vector<UniqueFd> pidfds,
                                                             Deadline deadline) {
  const int ranks = static_cast<int>(arenas.size());
  if (own == nullptr || ranks < 1 || ranks > kMaxLocalRanks || arenas.size() != pidfds.size() ||
      me < 0 || me >= ranks) {
    return Status::invalid("a neighbourhood of " + std::to_string(ranks) + " ranks (at most " +
                           std::to_string(kMaxLocalRanks) + ") seen by local rank " +
                           std::to_string(me));
  }
  std::unique_ptr<Neighbourhood> result(new Neighbourhood());
  result->own_ = std::move(own);
  result->me_ = me;
  result->epoch_ = epoch;
  const int processors = processorsTogether(pidfds);
  result->crowded_ = ranks > processors;
  result->roomy_ = ranks == 1 || ranks * 2 <= processors;
  result->pidfds_ = std::move(pidfds);
  result->gone_ = std::vector<std::atomic<bool>>(static_cast<std::size_t>(ranks));
  {
    const MutexLock lock(result->mutex_);
    result->goneStatuses_.resize(static_cast<std::size_t>(ranks));
  }
  FARANDOLE_RETURN_IF_ERROR(result->mapArenas(std::move(arenas)));
  FARANDOLE_RETURN_IF_ERROR(me == 0 ? result->makeHeader() : result->awaitHeader(deadline));
  if (ranks > 1) result->shareMemory();
  return result;
}

Neighbourhood::~Neighbourhood() = default;

Status Neighbourhood::mapArenas(std::vector<UniqueFd> arenas) {
  for (std::size_t rank = 0; rank < arenas.size(); ++rank) {
    if (rank == static_cast<std::size_t>(me_)) {
      bases_.push_back(own_->base());
      sizes_.push_back(own_->capacity());
      continue;
    }
    const int fd = arenas[rank].get();
    const std::string whose = "the shared memory of local rank " + std::to_string(rank);
    struct stat info {};
    if (::fstat(fd, &info) != 0) return Status::fromErrno(whose, errno);
    const int seals = ::fcntl(fd, F_GET_SEALS);
    // Unsealed, its owner could shrink it while this process reads it.
    if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || info.st_size <= 0) {
      return Status::invalid(whose + " is not a sealed memfd");
    }
    Result<Mapping> mapping =
        Mapping::map(fd, static_cast<std::size_t>(info.st_size), /*inherit=*/false);
    if (!mapping.ok()) return mapping.status();
    mappings_.push_back(std::move(mapping).value());
    bases_.push_back(mappings_.back().data());
    sizes_.push_back(mappings_.back().size());
  }
  if (sizes_[0] < sizeof(NeighbourhoodHeader)) {
    return Status::invalid("the arena of local rank 0 has no room for the neighbourhood's header");
  }
  header_ = reinterpret_cast<NeighbourhoodHeader*>(bases_[0]);
  return {};
}

Status Neighbourhood::makeHeader() {
  Result<void*> memory = own_->allocate(sizeof(NeighbourhoodHeader));
  if (!memory.ok()) return memory.status();
  if (*memory != own_->base()) {
    return Status::internal("the neighbourhood's header is not the arena's first allocation");
  }
  header_ = new (*memory) NeighbourhoodHeader();
  header_->epoch.store(epoch_, std::memory_order_relaxed);
  // Release: who sees the magic sees the epoch and the zeroed doorbells.
  header_->magic.store(NeighbourhoodHeader::kMagic, std::memory_order_release);
  return {};
}

Status Neighbourhood::awaitHeader(Deadline deadline) {
  while (header_->magic.load(std::memory_order_acquire) != NeighbourhoodHeader::kMagic) {
    if (deadline.passed()) {
      return Status::timeout("local rank 0 has not set up the neighbourhood").withRank(0);
    }
    if (endedWithin(pidfds_[0].get(), 1)) {
      // It may have written its header, done all it wanted, and ended since the last look.
      if (header_->magic.load(std::memory_order_acquire) == NeighbourhoodHeader::kMagic) break;
      return Status(Code::kPeerLost, "local rank 0 ended during set-up").withRank(0);
    }
  }
  const std::uint64_t theirs = header_->epoch.load(std::memory_order_relaxed);
  if (theirs != epoch_) {
    return Status(Code::kMismatch, "local rank 0 is in epoch " + std::to_string(theirs) +
                                       ", this rank in epoch " + std::to_string(epoch_))
        .withRank(0);
  }
  return {};
}

void Neighbourhood::shareMemory() {
  MemoryPromises::Options options;
  options.me = me_;
  options.ranks = size();
  options.available = &availableMemory;
  options.ended = [this](int rank) { return endedWithin(pidfd(rank), 0); };
  own_->shareMemoryWith(std::make_unique<MemoryPromises>(header_->promises, std::move(options)));
}

std::byte* Neighbourhood::at(int rank, std::uint64_t offset, std::uint64_t bytes) const {
  if (rank < 0 || rank >= size()) return nullptr;
  const auto index = static_cast<std::size_t>(rank);
  if (offset > sizes_[index] || bytes > sizes_[index] - offset) return nullptr;
  return bases_[index] + offset;
}

std::uint64_t Neighbourhood::offsetOf(const void* p) const {
  return static_cast<std::uint64_t>(static_cast<const std::byte*>(p) - own_->base());
}

void Neighbourhood::wake(int rank) {
  std::atomic<std::uint32_t>& word = header_->doorbells[rank].word;
  // Release pairs with the sleeper's acquire of the word; a waker that comes between the sleeper's
  // look at the word and its futex call changes the word, so that call returns at once.
  word.fetch_add(1, std::memory_order_release);
  futexWakeAll(word, FutexScope::kShared);
}

void Neighbourhood::ring(int rank) {
  fullFence();
  const std::uint64_t bit = std::uint64_t{1} << (rank % 64);
  if ((header_->sleepers[rank / 64].load(std::memory_order_relaxed) & bit) != 0) wake(rank);
}

void Neighbourhood::ring(std::span<const std::uint64_t> ranks) {
  fullFence();
  const std::size_t words = std::min(ranks.size(), std::size(header_->sleepers));
  for (std::size_t word = 0; word < words; ++word) {
    std::uint64_t asleep = header_->sleepers[word].load(std::memory_order_relaxed) & ranks[word];
    for (; asleep != 0; asleep &= asleep - 1) {
      const int rank = static_cast<int>(word) * 64 + std::countr_zero(asleep);
      if (rank < size()) wake(rank);
    }
  }
}

void Neighbourhood::ringAll() {
  std::uint64_t others[kMaxLocalRanks / 64];
  std::fill(std::begin(others), std::end(others), ~std::uint64_t{0});
  others[me_ / 64] &= ~(std::uint64_t{1} << (me_ % 64));
  ring(std::span<const std::uint64_t>(others, static_cast<std::size_t>(size() + 63) / 64));
}

std::uint32_t Neighbourhood::announceSleep() {
  const std::uint32_t seen = header_->doorbells[me_].word.load(std::memory_order_acquire);
  header_->sleepers[me_ / 64].fetch_or(std::uint64_t{1} << (me_ % 64), std::memory_order_seq_cst);
  // With the fence in ring(): either the publisher sees the bit, or the caller's last look sees
  // what was published.
  fullFence();
  return seen;
}

bool Neighbourhood::sleep(std::uint32_t seen, Deadline deadline) {
  if (failed()) return true;
  return futexWait(header_->doorbells[me_].word, seen,
                   Deadline::after(deadline.left(kLongestSleep)),
                   FutexScope::kShared) != FutexWait::kInterrupted;
}

void Neighbourhood::awake() {
  auto& word = header_->sleepers[me_ / 64];
  const std::uint64_t bit = std::uint64_t{1} << (me_ % 64);
  // Only this rank sets it, and mostly it is not set.
  if ((word.load(std::memory_order_relaxed) & bit) != 0) {
    word.fetch_and(~bit, std::memory_order_relaxed);
  }
}

void Neighbourhood::fail(Status status) {
  {
    const MutexLock lock(mutex_);
    if (failed_.load(std::memory_order_relaxed)) return;
    failure_ = std::move(status);
    failed_.store(true, std::memory_order_release);
  }
  wake(me_);
}

void Neighbourhood::noteGone(int rank, Status status) {
  const auto at = static_cast<std::size_t>(rank);
  {
    const MutexLock lock(mutex_);
    if (gone_[at].load(std::memory_order_relaxed)) return;
    goneStatuses_[at] = std::move(status);
    // Release: who sees it looks at that rank's memory after its end.
    gone_[at].store(true, std::memory_order_release);
    goneCount_.fetch_add(1, std::memory_order_release);
  }
  wake(me_);
}

Status Neighbourhood::goneStatus(int rank) const {
  const MutexLock lock(mutex_);
  return goneStatuses_[static_cast<std::size_t>(rank)];
}

Status Neighbourhood::failure() const {
  const MutexLock lock(mutex_);
  return failure_;
}

}  // namespace farandole::machine
