// AllreduceExchange: allreduce of ordinary memory through slots.
//
// The array is cut into rounds, and each round into one *part* per member. In a round each member
// contributes the parts that others reduce, reduces its own part (in rank order, straight from its
// own memory and the others' slots into its own memory and its answer slot), and picks up the
// answers of the others: every byte is copied once on its way in and once on its way out, and only
// the bytes that must travel. Rounds overlap: contributions run ahead, so that no member waits for
// a flag while there is something to copy.
//
// A reduce-scatter followed by an allgather, as in R. Rabenseifner, "Optimization of Collective
// Reduction Operations", ICCS 2004, but every part is reduced in one step from all inputs.
//
// A part of an operation: used and owned by it.
#pragma once

#include <cstdint>
#include <vector>

#include "collective/segments.h"
#include "collective/shm/operation.h"
#include "collective/shm/stopwatch.h"

namespace farandole::collective::shm {

class AllreduceExchange {
 public:
  AllreduceExchange(Board& board, const Segments& segments, const Reduction& reduction,
                    const ExchangeLayout& layout, std::uint64_t firstStep, Stopwatch& watch);

  Advance advance(Budget& budget);
  std::uint64_t end() const { return first_ + rounds_; }

 private:
  struct Range {
    std::int64_t begin;
    std::int64_t end;
  };
  // Member's part of a round.
  Range part(std::uint64_t round, int member) const;
  // Where the part for `reader` lies in the contribution of `writer`.
  std::byte* slotFor(int writer, int reader, std::uint64_t round) const;

  void contribute(std::uint64_t round);
  void reducePart(std::uint64_t round);
  void pickUp(std::uint64_t round);

  Board& board_;
  const Segments& segments_;
  const Reduction& reduction_;
  const std::size_t elementBytes_;
  const std::size_t partBytes_;
  const Store store_;
  const std::uint64_t first_;
  Stopwatch& watch_;
  std::int64_t partElements_;
  std::uint64_t rounds_;

  // Rounds that are over, in this member's three roles; contributed_ >= reduced_ >= picked_.
  std::uint64_t contributed_ = 0;
  std::uint64_t reduced_ = 0;
  std::uint64_t picked_ = 0;
  std::vector<const void*> sources_;
};

}  // namespace farandole::collective::shm
