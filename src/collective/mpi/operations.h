// The operations of the mpi engine, which its communicator makes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collective/mpi/operation.h"

namespace farandole::collective::mpi {

// Allreduce in three ways (choose.h decides):
//
//   native    MPI_Iallreduce, for what MPI computes as we do, in large sets. All ranks get the same
//             bits from the implementations we know (MPI only recommends it); two runs may differ.
//   gathered  everybody gets everything and reduces it in rank order: for small arrays.
//   exchange  member i gets everybody's part i, reduces it in rank order, and hands it to all: as
//             few bytes as a ring (link/operations.h names the papers). float16 and bfloat16 travel
//             as they are, are accumulated in float32 and rounded once.
//
// The last two are bit-identical on all members and in every run, for all types and operators.
OperationPtr makeAllreduce(MpiContext& context, std::span<const Piece> pieces,
                           const Reduction& reduction);

// Broadcast shares the cutting and packing.
OperationPtr makeBroadcast(MpiContext& context, std::span<const Piece> pieces, DType dtype,
                           int root);

// Reduce-scatter, and reduction to one member.
//
// Everybody sends every receiver its part, window by window, and the receiver reduces in rank
// order: bit-identical in every run, for all types and operators. A reduction to one member that
// MPI computes as we do is MPI_Ireduce, unless the result must not depend on MPI's choices.
OperationPtr makeReduceScatter(MpiContext& context, const void* in, void* out,
                               std::span<const std::int64_t> counts, const Reduction& reduction);
OperationPtr makeReduce(MpiContext& context, const void* in, void* out, std::int64_t count,
                        const Reduction& reduction, int root);

// Operations that only move bytes: allgather, gather, scatter, alltoall, barrier.
//
// MPI's own functions where its int counts and displacements suffice, for which all members know
// enough to decide alike; messages otherwise, and always for alltoall, whose members know only
// their own rows.

// Everything in bytes; parts are those of the concatenation.
struct MoveArguments {
  const void* in = nullptr;
  void* out = nullptr;
  std::vector<std::int64_t> parts;     // per member: sent (alltoall) or agreed
  std::vector<std::int64_t> received;  // alltoall only
  int root = 0;
};

OperationPtr makeAllgather(MpiContext& context, MoveArguments arguments);
OperationPtr makeGather(MpiContext& context, MoveArguments arguments);
OperationPtr makeScatter(MpiContext& context, MoveArguments arguments);
OperationPtr makeAlltoall(MpiContext& context, MoveArguments arguments);
OperationPtr makeBarrier(MpiContext& context);

// Adasum (collective/adasum.h): everybody gets everybody's vectors and computes the whole
// tournament.
OperationPtr makeAdasum(MpiContext& context, std::span<const Piece> pieces, DType dtype,
                        const Scale& scale);

}  // namespace farandole::collective::mpi
