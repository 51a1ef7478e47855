// Batches: random operations that are in flight together, the same on every rank because all draw
// them from one seed, and what each of them must give.
//
// Elements of reductions are small whole numbers, so that every order of adding gives the same
// bits; what is only moved is arbitrary bytes. Both follow from the operation's salt, the rank and
// the place, so the reference needs nobody's memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "farandole.h"

namespace conformance {

// Numbers that depend on the seed only.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();  // splitmix64
  // 0 … most.
  std::int64_t upTo(std::int64_t most) {
    return static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(most + 1));
  }
  std::int64_t between(std::int64_t least, std::int64_t most) { return least + upTo(most - least); }
  bool percent(int chance) { return upTo(99) < chance; }
  template <typename T>
  void shuffle(std::vector<T>& items) {
    for (std::size_t i = items.size(); i > 1; --i) {
      std::swap(items[i - 1], items[static_cast<std::size_t>(upTo(static_cast<int>(i) - 1))]);
    }
  }
  template <typename T>
  const T& oneOf(const std::vector<T>& items) {
    return items[static_cast<std::size_t>(upTo(static_cast<std::int64_t>(items.size()) - 1))];
  }

 private:
  std::uint64_t state_;
};

// The dice of one thing among many.
Dice diceOf(std::uint64_t seed, std::uint64_t which, std::uint64_t more = 0);

struct Planned {
  std::string name;
  int operation = FARANDOLE_BARRIER;
  int dtype = FARANDOLE_FLOAT32;
  int op = FARANDOLE_SUM;
  int set = 0;               // which of the sets
  std::vector<int> members;  // its ranks
  int root = 0;              // a rank; the sender of a message
  int peer = 0;              // its receiver
  int tag = 0;
  double prescale = 1;
  double postscale = 1;
  std::int64_t width = 1;          // elements of a row
  std::vector<std::int64_t> rows;  // of each member's input
  // Rows from member to member (alltoall), or those of each member (reducescatter, scatter); empty:
  // split evenly.
  std::vector<std::vector<std::int64_t>> splits;
  std::vector<bool> present;  // members that bring data; the others have joined
  bool ordered = false;
  int group = 0;  // 0: none
  std::uint64_t salt = 0;

  int memberOf(int rank) const;  // -1: none
  std::size_t bytes(std::int64_t count) const;
  // Elements.
  std::int64_t inputOf(int member) const;
  std::int64_t outputOf(int member) const;
  // Rows that a member receives from each, where the result tells.
  std::vector<std::int64_t> receivedBy(int member) const;
  std::string describe() const;

  // The member's input, and the bytes that are wrong in its output: "" or what.
  void fill(int member, unsigned char* memory) const;
  std::string check(int member, const unsigned char* output) const;
};

struct BatchOptions {
  std::uint64_t seed = 1;
  std::vector<std::vector<int>> sets;  // ranks of each, the world first
  std::int64_t mostBytes = 0;          // of a batch, about
};
using Batch = std::vector<Planned>;

// Of that round; some repeat the operations of an earlier one, with other data.
Batch batchOf(const BatchOptions& options, std::int64_t round);
// Operations that ranks leave one after the other by joining, in order: steps[i] is how many of
// them member i takes part in.
Batch joiningBatchOf(const BatchOptions& options, std::int64_t round,
                     std::vector<std::int64_t>& steps);

}  // namespace conformance
