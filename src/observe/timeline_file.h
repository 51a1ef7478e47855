// The file under a Timeline: a JSON array to which several processes append whole lines.
#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"

namespace farandole::observe {

// Opens path for appending. If the file does not exist, creates it with the array's opening
// bracket. If another process is creating it, waits for that bracket until the deadline.
Result<UniqueFd> openTimelineFile(const std::string& path, Deadline deadline);

// Truncates or creates the file, with the opening bracket.
Status createTimelineFile(const std::string& path);

// Appends with one write(). If a full disk cuts it off, that is an error and is not repeated,
// because others may have written since.
Status appendToTimelineFile(int fd, std::string_view lines, const std::string& path);

}  // namespace farandole::observe
