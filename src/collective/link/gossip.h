// Gossip: a small block of every member reaches every member, through scratch memory.
//
// Directly: everybody sends its block to everybody, one step. Bruck: in step k everybody sends all
// it has, which are the blocks of the 2^k members from itself on, to the member 2^k before it.
// Blocks lie in that order: block 0 is this member's own. J. Bruck et al., "Efficient Algorithms
// for All-to-All Communications in Multiport Message-Passing Systems", IEEE Transactions on
// Parallel and Distributed Systems 8(11), 1997. Unlike recursive doubling it serves any number of
// members.
//
// A part of an operation: uses two of its counters, and kSteps steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "collective/link/operation.h"

namespace farandole::collective::link {

class Gossip {
 public:
  static constexpr std::size_t kCounters = 2;
  static constexpr std::uint64_t kSteps = 64;

  // bytes: of every member's block.
  Gossip(const Context& context, Traffic& traffic, std::span<const std::size_t> bytes, bool direct,
         std::size_t firstCounter, std::uint64_t firstStep);

  std::size_t scratchBytes() const { return offsets_.back(); }
  // `mine`: this member's block if it need not be copied (direct only); otherwise it is put into
  // scratch before the first advance(), at its beginning.
  void begin(std::byte* scratch, const std::byte* mine = nullptr);

  // What can be done now. True if something was.
  bool advance();
  bool complete() const { return complete_; }
  // What a member has contributed; once complete, any member's.
  const std::byte* block(int member) const;
  std::size_t blockBytes(int member) const;

 private:
  std::size_t relative(int member) const;
  int absolute(std::size_t relative) const;
  void issue();

  Traffic& traffic_;
  const int me_;
  const int members_;
  const bool direct_;
  const std::size_t sent_;
  const std::size_t received_;
  const std::uint64_t firstStep_;
  std::vector<std::size_t> offsets_;  // where the blocks begin, this member's first; then the end
  std::byte* scratch_ = nullptr;
  const std::byte* mine_ = nullptr;
  std::uint64_t step_ = 0;
  std::size_t have_ = 1;      // blocks
  std::size_t expected_ = 1;  // after the step in flight
  bool underWay_ = false;
  bool complete_ = false;
};

}  // namespace farandole::collective::link
