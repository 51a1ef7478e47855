// The operations of the shared-memory engine, which its communicator makes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collective/segments.h"
#include "collective/shm/gate.h"
#include "collective/shm/operation.h"

namespace farandole::collective::shm {

// Allreduce and barrier: which way an operation goes, by its size and by where its memory lies.

// For two or more members; reduction.op is neither kAverage nor kAdasum.
OperationPtr makeAllreduce(ShmContext& context, std::span<const Piece> pieces,
                           const Reduction& reduction);
OperationPtr makeBarrier(ShmContext& context);

// Reductions whose result each member receives a part of, or one member all of it.

// The input is the concatenation of counts[i] elements for member i; `out` receives this member's,
// reduced. Reduce to a root is the case where only the root's count is not zero.
OperationPtr makeReduceScatter(ShmContext& context, const void* in, void* out,
                               std::span<const std::int64_t> counts, const Reduction& reduction);

// Move: every operation that only moves data: allgather, broadcast, alltoall, gather, scatter.
//
// Each is a set of streams. A *common* stream is one member's data for everybody who wants it and
// fills its whole slot; *personal* streams share the slot, one part for each other member. Rounds
// go on until the longest stream is through. Where all sources lie in their owners' arenas, readers
// copy from there instead (see gate.h).
struct MoveLayout {
  bool personal = false;
  // Personal: to each member (what goes to this member itself is in `self`); common: one.
  std::vector<Segments> outgoing;
  // From each member; empty where nothing is read.
  std::vector<Segments> incoming;
  Segments self;  // this member's data for itself
  // Bytes of the longest stream of any member, or of this member's if only a gate can tell.
  std::uint64_t longest = 0;
  bool longestIsLocal = false;
  // Members that send anything; the same on all members. Others' memory does not matter.
  std::vector<bool> sources;
  // Bytes that must agree on all members.
  std::uint64_t agreed = 0;
};

OperationPtr makeMove(ShmContext& context, MoveLayout layout);

// Adasum (collective/adasum.h) in shared memory: the members are the team that works on all
// vectors.
OperationPtr makeAdasum(ShmContext& context, std::span<const Piece> pieces, DType dtype,
                        const Scale& scale);

}  // namespace farandole::collective::shm
