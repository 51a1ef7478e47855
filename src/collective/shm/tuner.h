// Tuner: which way allreduces of a size go, chosen by how long they took.
//
// All members must go the same way, so member 0 chooses and writes its choice into the shared area:
// at the end of its operation number a of a size class it writes the entry for operation a+2. Every
// member reads that entry when it begins a+2: it is done with a+1, so it has seen a sign that
// member 0 gave in a+1, after writing. The entry is next overwritten at the end of a+4 (kAhead = 4
// entries in turn), when all members have begun a+4: none can still be reading it.
//
// Used by the communicator's thread only.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/reduce.h"
#include "collective/shm/board.h"

namespace farandole::collective::shm {

// How an allreduce of ordinary memory goes through slots.
struct ExchangeLayout {
  bool oneShot;           // everybody publishes everything and reduces everything
  std::size_t partBytes;  // otherwise: the part each member reduces in one round
  Store store;
};

class Tuner {
 public:
  explicit Tuner(Board& board);

  // What an allreduce does, and the notes for the record. Called once per allreduce, in order.
  struct Choice {
    std::size_t bytes = 0;
    int sizeClass = 0;
    int exchange = 0;  // index of the layout
    int direct = 0;    // 1: streaming stores
    bool measured = false;
    std::uint64_t number = 0;  // the number of the operation in its class
  };
  Choice begin(std::size_t bytes);
  const ExchangeLayout& layout(const Choice& choice) const;
  Store directStore(const Choice& choice) const {
    return choice.direct != 0 ? Store::kStreaming : Store::kCached;
  }

  // Member 0, at the operation's end; nanoseconds without the time others came late.
  void end(const Choice& choice, bool wasDirect, std::int64_t nanoseconds);

 private:
  static constexpr int kLayouts = 5;
  static constexpr int kSamples = 4;

  // The last few times of one way. The best of them counts: page faults and busy moments only ever
  // add to a time, and the way in use gets new samples all the time, so that luck does not last.
  class Record {
   public:
    void add(std::int64_t pace);
    int count() const { return count_; }
    std::int64_t best() const;

   private:
    std::array<std::int64_t, kSamples> samples_{};
    int count_ = 0;
    int next_ = 0;
  };
  struct ClassState {
    std::uint64_t number = 0;
    std::array<Record, kLayouts> exchange;
    std::array<Record, 2> direct;
  };
  bool allowed(int sizeClass, int layout) const;
  int defaultExchange(int sizeClass) const;
  int defaultDirect(int sizeClass) const;
  template <std::size_t N, typename Allowed>
  int next(const std::array<Record, N>& records, std::uint64_t number, int fallback,
           Allowed isAllowed) const;

  Board& board_;
  std::array<ExchangeLayout, kLayouts> layouts_;
  std::vector<ClassState> classes_;
};

}  // namespace farandole::collective::shm
