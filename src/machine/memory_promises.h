// MemoryPromises: keeps ranks of one machine that allocate at the same moment from promising
// themselves the same free memory, which the kernel would notice only when it kills one of them.
//
// Every rank has a word in shared memory that says how much it is about to reserve. A rank says so
// first, and looks at the free memory and at the others' words then: of two that come at the same
// moment at least one sees the other. Whoever meets one that has decided and reserves waits until
// that is over, because what is free means nothing meanwhile; and one that has reserved lets those
// who have come meanwhile decide before it goes. Who finds that it does not fit refuses all whose
// words are up: of ranks that ask together, none gets what is of no use without the others'. There
// is no lock that a killed rank could take along: the words of the dead do not count. One thread of
// a rank at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "base/clock.h"
#include "base/status.h"

namespace farandole::machine {

// In shared memory, zeroed.
struct PromiseBoard {
  static constexpr int kRanks = 256;
  std::atomic<std::uint32_t> changes;  // of any word
  // 0, or bytes, a multiple of 64, plus a phase.
  std::atomic<std::uint64_t> words[kRanks];
};

class MemoryPromises {
 public:
  struct Options {
    int me = 0;
    int ranks = 1;
    std::function<std::size_t()> available;  // memory that is free for all of them
    std::function<bool(int rank)> ended;
    // How long to wait for others that reserve.
    Duration timeout = std::chrono::seconds(60);
  };
  // The board outlives it.
  MemoryPromises(PromiseBoard& board, Options options)
      : board_(board), options_(std::move(options)) {}

  // Calls reserve() if so many bytes are free besides what the others are about to take, and
  // giveBack() after it if it turns out not to fit together. kOutOfMemory says how much is needed
  // and how much there is.
  Status reserve(std::size_t bytes, const std::function<Status()>& reserve,
                 const std::function<void()>& giveBack);

 private:
  struct Others {
    std::uint64_t deciding = 0;
    std::uint64_t reserving = 0;
    std::uint64_t reserved = 0;  // so it is not free any more
    int ranks = 0;
  };
  // Ok: may be reserved.
  Status decide(std::uint64_t bytes);
  // After it has reserved: the same, in the light of those who have come meanwhile.
  Status awaitOthers(std::uint64_t bytes);
  Others others() const;
  void say(std::uint64_t word);
  void refuseOthers();
  bool isRefused() const;
  void awaitChange(std::uint32_t seen, Deadline deadline);

  PromiseBoard& board_;
  const Options options_;
};

// "1.5 MiB"
std::string megabytes(std::size_t bytes);

}  // namespace farandole::machine
