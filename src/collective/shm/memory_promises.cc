#include "collective/shm/memory_promises.h"

#include <string>

#include "base/futex.h"

namespace farandole {
namespace {

constexpr std::uint64_t kPhase = 63;  // the bits of a word that are its phase
constexpr std::uint64_t kDeciding = 1;
constexpr std::uint64_t kReserving = 2;
constexpr Duration kGlance = std::chrono::milliseconds(20);

Status notEnough(std::uint64_t bytes, std::size_t available, std::uint64_t promised, int ranks) {
  std::string text = "shared memory: " + megabytes(bytes) + " wanted, " + megabytes(available) +
                     " available to this process";
  if (promised > 0) {
    text += ", of which " + std::to_string(ranks) + " other rank(s) of this machine take " +
            megabytes(promised) + " at this moment";
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
  board_.words[options_.me].store(word, std::memory_order_seq_cst);
  board_.changes.fetch_add(1, std::memory_order_seq_cst);
  futexWakeAll(board_.changes, FutexScope::kShared);
}

MemoryPromises::Others MemoryPromises::others() const {
  Others others;
  for (int rank = 0; rank < options_.ranks; ++rank) {
    if (rank == options_.me) continue;
    const std::uint64_t word = board_.words[rank].load(std::memory_order_seq_cst);
    if (word == 0 || options_.ended(rank)) continue;
    (word & kPhase) == kReserving ? others.reserving += word& ~kPhase
                                  : others.deciding += word & ~kPhase;
    ++others.ranks;
  }
  return others;
}

Status MemoryPromises::decide(std::uint64_t bytes) {
  const Deadline deadline = Deadline::after(options_.patience);
  for (;;) {
    const std::uint32_t seen = board_.changes.load(std::memory_order_seq_cst);
    const Others others = this->others();
    const std::size_t available = options_.available();
    const bool late = deadline.passed();
    // Words and free memory must be of one moment.
    if (board_.changes.load(std::memory_order_seq_cst) != seen && !late) continue;
    const std::uint64_t promised = others.deciding + others.reserving;
    if (promised <= available && bytes <= available - promised) return {};
    if (others.reserving == 0 || bytes > available || late) {
      return notEnough(bytes, available, promised, others.ranks);
    }
    futexWait(board_.changes, seen, Deadline::after(deadline.left(kGlance)), FutexScope::kShared);
  }
}

Status MemoryPromises::reserve(std::size_t bytes, const std::function<Status()>& reserve) {
  const std::uint64_t whole = (std::uint64_t{bytes} + kPhase) & ~kPhase;
  say(whole | kDeciding);
  Status status = decide(whole);
  if (status.ok()) {
    say(whole | kReserving);
    status = reserve();
  }
  say(0);
  return status;
}

}  // namespace farandole
