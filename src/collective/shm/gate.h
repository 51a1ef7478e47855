// Gate: the first step of an operation that may read other ranks' memory directly. Each member
// leaves a note in its contribution slot: is its memory in its arena, and where?
//
// A member whose own memory is ordinary knows the outcome and need not read the others' notes; its
// note is announced together with its first data, which saves a flag's way between two cores.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "collective/segments.h"
#include "collective/shm/board.h"

namespace farandole::collective::shm {

enum class GateKind : std::uint32_t { kAllreduce = 1, kMove = 2, kReduceScatter = 3, kAdasum = 4 };

// Memory in a member's arena.
struct SharedRange {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

struct GateNote {
  bool shared = false;
  bool failed = false;      // this member cannot take part; all fail
  std::uint64_t extra = 0;  // the operation's own
  std::vector<SharedRange> ranges;
};

class Gate {
 public:
  // `bytes`: a figure that must agree on all members (the operation's size).
  Gate(GateKind kind, std::uint64_t bytes) : kind_(kind), bytes_(bytes) {}

  // Writes this member's note into its slot of the step; not announced yet. With more ranges than
  // fit, the note says that nothing is shared, and so does the result.
  bool write(Board& board, std::uint64_t step, const GateNote& note) const;
  // That member's note, after board.contributed(member, step). Fails if it belongs to another
  // operation.
  Result<GateNote> read(const Board& board, std::uint64_t step, int member) const;

 private:
  GateKind kind_;
  std::uint64_t bytes_;
};

// The range of memory in this rank's arena, if it lies there. Empty memory lies everywhere.
std::optional<SharedRange> sharedRange(Board& board, const void* memory, std::size_t bytes);

}  // namespace farandole::collective::shm
