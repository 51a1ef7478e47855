// AllreduceDirect: allreduce of memory that lies in the members' arenas: each member reduces its
// slice of everybody's input straight into everybody's output. No copies at all.
//
// A part of an operation: used and owned by it.
#pragma once

#include <cstdint>
#include <vector>

#include "collective/segments.h"
#include "collective/shm/gate.h"
#include "collective/shm/operation.h"

namespace farandole::collective::shm {

class AllreduceDirect {
 public:
  AllreduceDirect(Board& board, const Segments& segments, const Reduction& reduction, Store store,
                  std::uint64_t gateStep);

  // Where this member's pieces lie in its arena (inputs, then outputs); not shared if one of them
  // lies elsewhere.
  static GateNote describe(Board& board, const Segments& segments);
  // Takes a member's note; fails if it points outside that member's arena. All members' notes are
  // taken, in order, before advance().
  Status take(int member, const GateNote& note);

  // kDone when this member's slice is reduced and everybody else's too.
  Advance advance(Budget& budget);
  std::uint64_t end() const { return gate_ + 2; }

 private:
  const std::byte*& in(std::size_t piece, int member) {
    return ins_[piece * static_cast<std::size_t>(board_.size()) + static_cast<std::size_t>(member)];
  }
  std::byte*& out(std::size_t piece, int member) {
    return outs_[piece * static_cast<std::size_t>(board_.size()) +
                 static_cast<std::size_t>(member)];
  }
  void reduceRange(std::int64_t begin, std::int64_t end);

  Board& board_;
  const Segments& segments_;
  const Reduction& reduction_;
  const Store store_;
  const std::uint64_t gate_;
  std::vector<const std::byte*> ins_;  // [piece][member]
  std::vector<std::byte*> outs_;
  std::vector<const void*> sources_;
  std::vector<void*> destinations_;
  std::int64_t at_;  // the position in this member's slice
  std::int64_t end_;
  bool announced_ = false;
};

}  // namespace farandole::collective::shm
