// Operations of a set with one member: nothing travels.
#pragma once

#include <span>

#include "collective/link/operation.h"

namespace farandole::net {

OperationPtr makeLocalReduction(Context& context, std::span<const Piece> pieces,
                                const Reduction& reduction);
OperationPtr makeLocalCopy(Context& context, const void* in, void* out, std::size_t bytes);

}  // namespace farandole::net
