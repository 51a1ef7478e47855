// Operations of a set of one member: scaled copies.
#pragma once

#include <span>

#include "collective/shm/operation.h"

namespace farandole {

// out = in * pre * post / divisor, piece by piece.
OperationPtr makeLocalReduction(ShmContext& context, std::span<const Piece> pieces,
                                const Reduction& reduction);
OperationPtr makeLocalCopy(ShmContext& context, const void* in, void* out, std::size_t bytes);

}  // namespace farandole
