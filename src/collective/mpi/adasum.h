// Adasum (collective/adasum.h): everybody gets everybody's vectors and computes the whole
// tournament.
#pragma once

#include <span>

#include "collective/mpi/operation.h"

namespace farandole::collective::mpi {

OperationPtr makeAdasum(MpiContext& context, std::span<const Piece> pieces, DType dtype,
                        const Scale& scale);

}  // namespace farandole::collective::mpi
