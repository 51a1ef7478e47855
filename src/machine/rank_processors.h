// How many processors the ranks of a machine have, together: each may be bound to its own.
#pragma once

#include <span>

#include "base/fd.h"

namespace farandole::machine {

// The union of what the calling thread and these processes may use, at least 1. pidfds: those that
// cannot be asked (none, ended, of a container that is not seen from here) are left out.
int processorsTogether(std::span<const UniqueFd> pidfds);

}  // namespace farandole::machine
