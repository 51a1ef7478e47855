// Blocks: parts of the members, of any lengths, by machine: for operations whose data belongs to
// members (allgather, reducescatter).
//
// Every part is cut into the same number of chunks. A chunk's *block* of a machine is what its
// members have of it, in their order; every block is cut into one slice per carrier. Carrier s
// deals with slice s of all machines' blocks. A machine's members need not be neighbours in the
// set, so a slice is a list of *runs* of the members' parts.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "collective/hierarchy/machines.h"
#include "collective/hierarchy/pipeline.h"

namespace farandole::collective::hierarchy {

class Blocks {
 public:
  // The machines outlive it.
  Blocks(const Machines& machines, std::span<const std::int64_t> counts, const Cut& cut);

  // Where a member's part begins in the concatenation of all, and where its chunk begins in that.
  std::int64_t start(int member) const { return starts_[static_cast<std::size_t>(member)]; }
  std::int64_t begin(int member, std::int64_t chunk) const {
    return splitAt(counts_[static_cast<std::size_t>(member)], chunk, cut_.chunks);
  }
  std::int64_t count(int member, std::int64_t chunk) const {
    return begin(member, chunk + 1) - begin(member, chunk);
  }
  int slices() const { return cut_.slices; }

  std::int64_t total(std::int64_t chunk) const;
  // Elements of a slice: of a machine's block, of every machine's, of all together.
  std::int64_t slice(int machine, std::int64_t chunk, int slice) const;
  std::vector<std::int64_t> perMachine(std::int64_t chunk, int slice) const;
  std::int64_t across(std::int64_t chunk, int slice) const;
  // What each local member carries of all blocks: across() for carriers, else 0.
  std::vector<std::int64_t> perCarrier(std::int64_t chunk) const;
  // How much of this machine's slice is each local member's.
  std::vector<std::int64_t> perOwner(std::int64_t chunk, int slice) const;
  // How much of this member's chunk is in each slice; by local member, 0 for those that carry none.
  std::vector<std::int64_t> mineBySlice(std::int64_t chunk) const;

  // f(member, offset in its part, count) for every run of a slice, machine by machine.
  template <typename F>
  void forEachRun(std::int64_t chunk, int slice, F f) const {
    for (int machine = 0; machine < machines_.count(); ++machine) {
      const Range range = rangeOf(machine, chunk, slice);
      std::int64_t at = 0;  // its start in the block
      for (const int member : machines_.membersOf(machine)) {
        const std::int64_t length = count(member, chunk);
        const std::int64_t from = std::max(range.begin, at);
        const std::int64_t to = std::min(range.end, at + length);
        if (from < to) f(member, begin(member, chunk) + from - at, to - from);
        at += length;
      }
    }
  }

 private:
  struct Range {
    std::int64_t begin;
    std::int64_t end;
  };
  std::int64_t block(int machine, std::int64_t chunk) const;
  // The range of a slice in its machine's block; empty if the member carries none.
  Range rangeOf(int machine, std::int64_t chunk, int slice) const;

  const Machines& machines_;
  const Cut cut_;
  std::vector<std::int64_t> counts_;
  std::vector<std::int64_t> starts_;
};

}  // namespace farandole::collective::hierarchy
