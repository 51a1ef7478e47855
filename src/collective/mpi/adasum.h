// Adasum (see collective/shm/adasum.h): everybody gets everybody's array and computes the whole
// tournament, in the same order, so that all have the same bits. The arithmetic is that of the
// shared-memory engine.
#pragma once

#include <span>

#include "collective/mpi/operation.h"

namespace farandole::mpi {

OperationPtr makeAdasum(MpiContext& context, std::span<const Piece> pieces, DType dtype,
                        const Scale& scale);

}  // namespace farandole::mpi
