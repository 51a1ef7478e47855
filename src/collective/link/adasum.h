// Adasum (see collective/shm/adasum.h for what it computes): everybody's inputs reach everybody,
// tensor by tensor or several small ones together, and everybody goes through the same tournament,
// with the same blocks and in the same order as the shared-memory engine.
#pragma once

#include <span>

#include "collective/link/operation.h"

namespace farandole::net {

OperationPtr makeAdasum(Context& context, std::span<const Piece> pieces, DType dtype,
                        const Scale& scale);

}  // namespace farandole::net
