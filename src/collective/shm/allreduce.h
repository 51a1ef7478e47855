// Allreduce and barrier: which way an operation goes, by its size and by where its memory lies.
#pragma once

#include <span>

#include "collective/shm/operation.h"

namespace farandole::collective::shm {

// For two or more members; reduction.op is neither kAverage nor kAdasum.
OperationPtr makeAllreduce(ShmContext& context, std::span<const Piece> pieces,
                           const Reduction& reduction);
OperationPtr makeBarrier(ShmContext& context);

}  // namespace farandole::collective::shm
