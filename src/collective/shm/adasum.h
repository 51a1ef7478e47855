// Adasum (collective/adasum.h) in shared memory: the members are the team that works on all
// vectors.
#pragma once

#include <span>

#include "collective/shm/operation.h"

namespace farandole {

OperationPtr makeAdasum(ShmContext& context, std::span<const Piece> pieces, DType dtype,
                        const Scale& scale);

}  // namespace farandole
