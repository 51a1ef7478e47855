// MemoryPromises: keeps ranks of one machine that allocate at the same moment from counting on the
// same free memory. The kernel would notice that only when it kills one of them.
//
// Every rank has a word in shared memory that says how much it is about to reserve. A rank first
// sets its word, and then looks at the free memory and at the words of the others: of two ranks
// that come at the same moment, at least one sees the other. If another rank has decided and is
// reserving, a rank waits until that is over, because the free memory means nothing meanwhile. A
// rank that has reserved lets the ranks that have come meanwhile decide before it clears its word.
// A rank whose request does not fit refuses all ranks whose words are set: of ranks that ask
// together, none gets memory that is useless without that of the others. There is no lock that a
// killed rank could hold: the words of processes that have ended do not count. One thread of a rank
// may call it at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "base/clock.h"
#include "base/status.h"

namespace farandole::machine {

// Lies in shared memory, zeroed at first.
struct PromiseBoard {
  static constexpr int kRanks = 256;
  std::atomic<std::uint32_t> changes;  // counts the changes of all words
  // 0, or a number of bytes, a multiple of 64, plus a phase.
  std::atomic<std::uint64_t> words[kRanks];
};

class MemoryPromises {
 public:
  struct Options {
    int me = 0;
    int ranks = 1;
    std::function<std::size_t()> available;  // memory that is free for all of them
    std::function<bool(int rank)> ended;
    // How long to wait for other ranks that are reserving.
    Duration timeout = std::chrono::seconds(60);
  };
  // The board outlives this object.
  MemoryPromises(PromiseBoard& board, Options options)
      : board_(board), options_(std::move(options)) {}

  // Calls reserve() if that many bytes are free besides what the others are about to take. Calls
  // giveBack() after it if the requests turn out not to fit together. kOutOfMemory says how much is
  // needed and how much there is.
  Status reserve(std::size_t bytes, const std::function<Status()>& reserve,
                 const std::function<void()>& giveBack);

 private:
  struct Others {
    std::uint64_t deciding = 0;
    std::uint64_t reserving = 0;
    std::uint64_t reserved = 0;  // so it is not free any more
    int ranks = 0;
  };
  // Ok if the bytes may be reserved.
  Status decide(std::uint64_t bytes);
  // Called after the reservation. Decides again, with the ranks that have come meanwhile.
  Status awaitOthers(std::uint64_t bytes);
  Others others() const;
  void say(std::uint64_t word);
  void refuseOthers();
  bool isRefused() const;
  void awaitChange(std::uint32_t seen, Deadline deadline);

  PromiseBoard& board_;
  const Options options_;
};

// For instance "1.5 MiB".
std::string megabytes(std::size_t bytes);

}  // namespace farandole::machine
