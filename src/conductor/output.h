// Where an operation's result goes: the caller's memory, what its allocator gives, or memory of the
// library's own.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "conductor/entry.h"

namespace farandole {

// Noted in the entry's outcome, with its size and shape. An error if the caller's memory is
// smaller: the last guard, for what is the caller's mistake or another rank's has been refused
// before.
Result<void*> provideOutput(Entry& entry, const std::vector<std::int64_t>& shape);

}  // namespace farandole
