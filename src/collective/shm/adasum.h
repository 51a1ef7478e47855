// Adasum: a sum that counts what two gradients have in common only once:
//
//     adasum(a, b) = (1 - a·b / (2 a·a)) a + (1 - a·b / (2 b·b)) b
//
// applied to pairs of members, then to pairs of results, and so on (an odd one is carried over),
// for each piece by itself.
#pragma once

#include <span>

#include "collective/adasum_weights.h"
#include "collective/shm/operation.h"

namespace farandole {

OperationPtr makeAdasum(ShmContext& context, std::span<const Piece> pieces, DType dtype,
                        const Scale& scale);

}  // namespace farandole
