// The file under a Timeline: a JSON array to which several processes append whole lines.
#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"

namespace farandole::observe {

// Opens path for appending and creates it, with the array's opening bracket, if nobody has. If
// another process is just creating it, waits for that bracket until the deadline.
Result<UniqueFd> openTimelineFile(const std::string& path, Deadline deadline);

// Truncates or creates it, with the opening bracket.
Status createTimelineFile(const std::string& path);

// One write(); what a full disk cut off is an error, not repeated: others may have written since.
Status appendToTimelineFile(int fd, std::string_view lines, const std::string& path);

}  // namespace farandole::observe
