// Adasum (collective/adasum.h) in shared memory: the members are the team that works on all
// vectors.
#pragma once

#include <span>

#include "collective/shm/operation.h"

namespace farandole::collective::shm {

OperationPtr makeAdasum(ShmContext& context, std::span<const Piece> pieces, DType dtype,
                        const Scale& scale);

}  // namespace farandole::collective::shm
