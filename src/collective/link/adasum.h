// Adasum (collective/adasum.h): everybody's vectors reach everybody, tensor by tensor or several
// small ones together, and everybody computes the whole tournament.
#pragma once

#include <span>

#include "collective/link/operation.h"

namespace farandole::collective::link {

OperationPtr makeAdasum(Context& context, std::span<const Piece> pieces, DType dtype,
                        const Scale& scale);

}  // namespace farandole::collective::link
