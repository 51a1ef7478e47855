// Reductions whose result each member receives a part of, or one member all of it.
#pragma once

#include <cstdint>
#include <span>

#include "collective/shm/operation.h"

namespace farandole::collective::shm {

// The input is the concatenation of counts[i] elements for member i; `out` receives this member's,
// reduced. Reduce to a root is the case where only the root's count is not zero.
OperationPtr makeReduceScatter(ShmContext& context, const void* in, void* out,
                               std::span<const std::int64_t> counts, const Reduction& reduction);

}  // namespace farandole::collective::shm
