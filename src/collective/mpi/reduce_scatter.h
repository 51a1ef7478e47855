// Reduce-scatter, and reduction to one member.
//
// Everybody sends every receiver its part, window by window, and the receiver reduces in rank
// order: bit-identical in every run, for all types and operators. A reduction to one member that
// MPI computes as we do is MPI_Ireduce, unless the result must not depend on MPI's choices.
#pragma once

#include <span>

#include "collective/mpi/operation.h"

namespace farandole::collective::mpi {

OperationPtr makeReduceScatter(MpiContext& context, const void* in, void* out,
                               std::span<const std::int64_t> counts, const Reduction& reduction);
OperationPtr makeReduce(MpiContext& context, const void* in, void* out, std::int64_t count,
                        const Reduction& reduction, int root);

}  // namespace farandole::collective::mpi
