// The number of processors that the ranks of a machine have together: each may be bound to its own.
#pragma once

#include <span>

#include "base/fd.h"

namespace farandole::machine {

// The size of the union of what the calling thread and these processes may use, at least 1.
// Processes whose processors are unknown (they have ended, or are in a container that is not
// visible from here) are left out.
int processorsTogether(std::span<const UniqueFd> pidfds);

}  // namespace farandole::machine
