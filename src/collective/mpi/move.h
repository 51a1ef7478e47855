// Operations that only move bytes: allgather, gather, scatter, alltoall, barrier.
//
// MPI's own functions where its int counts and displacements suffice, for which all members know
// enough to decide alike; messages otherwise, and always for alltoall, whose members know only
// their own rows.
#pragma once

#include <cstdint>
#include <vector>

#include "collective/mpi/operation.h"

namespace farandole::collective::mpi {

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

}  // namespace farandole::collective::mpi
