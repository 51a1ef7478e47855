#include "machine/memory_promises.h"

#include <string>

#include "base/futex.h"

namespace farandole::machine {
namespace {

// The bits of a word that are not bytes: its phase, and whether it was refused by another rank.
constexpr std::uint64_t kPhase = 7;
constexpr std::uint64_t kDeciding = 1;
constexpr std::uint64_t kReserving = 2;
constexpr std::uint64_t kReserved = 3;
constexpr std::uint64_t kRefused = 8;
constexpr std::uint64_t kNoBytes = 63;
constexpr Duration kPromiseGlance = std::chrono::milliseconds(20);
// A look at the free memory takes a fraction of a millisecond.
constexpr Duration kOthersDecide = std::chrono::seconds(1);

Status notEnough(std::uint64_t bytes, std::size_t available, std::uint64_t others, int ranks) {
  std::string text = "shared memory: " + megabytes(bytes) + " wanted, " + megabytes(available) +
                     " available to this process";
  if (ranks > 0) {
    text += ", and " + std::to_string(ranks) + " other rank(s) of this machine want " +
            megabytes(others) + " at the same moment";
  }
  return Status::outOfMemory(std::move(text));
}

}  // namespace

std::string megabytes(std::size_t bytes) {
  return std::to_string(bytes >> 20) + "." + std::to_string(((bytes >> 10) & 1023) * 10 / 1024) +
         " MiB";
}

void MemoryPromises::say(std::uint64_t word) {
  // Sequentially consistent, as the looks at the words: see the head of this class.
  std::atomic<std::uint64_t>& own = board_.words[options_.me];
  std::uint64_t before = own.load(std::memory_order_relaxed);
  // A refusal holds until the end.
  while (!own.compare_exchange_weak(before, word == 0 ? 0 : word | (before & kRefused),
                                    std::memory_order_seq_cst)) {
  }
  board_.changes.fetch_add(1, std::memory_order_seq_cst);
  futexWakeAll(board_.changes, FutexScope::kShared);
}

bool MemoryPromises::isRefused() const {
  return (board_.words[options_.me].load(std::memory_order_seq_cst) & kRefused) != 0;
}

void MemoryPromises::refuseOthers() {
  for (int rank = 0; rank < options_.ranks; ++rank) {
    std::uint64_t word = board_.words[rank].load(std::memory_order_relaxed);
    while (rank != options_.me && word != 0 &&
           !board_.words[rank].compare_exchange_weak(word, word | kRefused,
                                                     std::memory_order_seq_cst)) {
    }
  }
}

MemoryPromises::Others MemoryPromises::others() const {
  Others others;
  for (int rank = 0; rank < options_.ranks; ++rank) {
    if (rank == options_.me) continue;
    const std::uint64_t word = board_.words[rank].load(std::memory_order_seq_cst);
    if (word == 0 || options_.ended(rank)) continue;
    const std::uint64_t phase = word & kPhase;
    (phase == kReserved    ? others.reserved
     : phase == kReserving ? others.reserving
                           : others.deciding) += word & ~kNoBytes;
    ++others.ranks;
  }
  return others;
}

void MemoryPromises::awaitChange(std::uint32_t seen, Deadline deadline) {
  futexWait(board_.changes, seen, Deadline::after(deadline.left(kPromiseGlance)),
            FutexScope::kShared);
}

Status MemoryPromises::decide(std::uint64_t bytes) {
  const Deadline deadline = Deadline::after(options_.timeout);
  for (;;) {
    const std::uint32_t seen = board_.changes.load(std::memory_order_seq_cst);
    const Others others = this->others();
    const std::size_t available = options_.available();
    const bool late = deadline.passed();
    const std::uint64_t promised = others.deciding + others.reserving;
    if (isRefused()) return notEnough(bytes, available, promised + others.reserved, others.ranks);
    // Words and free memory must be of one moment.
    if (board_.changes.load(std::memory_order_seq_cst) != seen && !late) continue;
    if (promised <= available && bytes <= available - promised) return {};
    if (others.reserving == 0 || bytes > available || late) {
      if (!late) refuseOthers();
      return notEnough(bytes, available, promised + others.reserved, others.ranks);
    }
    awaitChange(seen, deadline);
  }
}

Status MemoryPromises::awaitOthers(std::uint64_t bytes) {
  const Deadline deadline = Deadline::after(kOthersDecide);
  for (;;) {
    const std::uint32_t seen = board_.changes.load(std::memory_order_seq_cst);
    const Others others = this->others();
    if (isRefused()) {
      return notEnough(bytes, options_.available() + bytes,
                       others.deciding + others.reserving + others.reserved, others.ranks);
    }
    if (others.deciding == 0 || deadline.passed()) return {};
    awaitChange(seen, deadline);
  }
}

Status MemoryPromises::reserve(std::size_t bytes, const std::function<Status()>& reserve,
                               const std::function<void()>& giveBack) {
  const std::uint64_t whole = (std::uint64_t{bytes} + kNoBytes) & ~kNoBytes;
  say(whole | kDeciding);
  Status status = decide(whole);
  if (status.ok()) {
    say(whole | kReserving);
    status = reserve();
    if (status.ok()) {
      say(whole | kReserved);
      status = awaitOthers(whole);
      if (!status.ok()) giveBack();
    }
  }
  say(0);
  return status;
}

}  // namespace farandole::machine
