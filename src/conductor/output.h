// Where an operation's result goes: the caller's memory, what its allocator gives, or memory of the
// library's own.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/status.h"
#include "conductor/entry.h"

namespace farandole::conductor {

// Noted in the entry's outcome, with its size and shape: that one, or with so many rows instead of
// its first dimension (a scalar then becomes a vector). An error if the caller's memory is
// smaller: the last guard, for what is the caller's mistake or another rank's has been refused
// before.
Result<void*> provideOutput(Entry& entry, const std::vector<std::int64_t>& shape,
                            std::optional<std::int64_t> rows = std::nullopt);

}  // namespace farandole::conductor
