// Allreduce in three ways (choose.h decides):
//
//   native    MPI_Iallreduce, for what MPI computes as we do, in large sets. All ranks get the same
//             bits from the implementations we know (MPI only recommends it); two runs may differ.
//   gathered  everybody gets everything and reduces it in rank order: for small arrays.
//   exchange  member i gets everybody's part i, reduces it in rank order, and hands it to all: as
//             few bytes as a ring (link/slices.h names the papers). float16 and bfloat16 travel as
//             they are, are accumulated in float32 and rounded once.
//
// The last two are bit-identical on all members and in every run, for all types and operators.
#pragma once

#include <span>

#include "collective/mpi/operation.h"

namespace farandole::collective::mpi {

OperationPtr makeAllreduce(MpiContext& context, std::span<const Piece> pieces,
                           const Reduction& reduction);

// Broadcast shares the cutting and packing.
OperationPtr makeBroadcast(MpiContext& context, std::span<const Piece> pieces, DType dtype,
                           int root);

}  // namespace farandole::collective::mpi
