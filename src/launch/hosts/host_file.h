// Host files of all dialects: one host a line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "launch/hosts/host_spec.h"

namespace farandole::launch::hosts {

// Lines: "host" (a name, an address, an alias of ssh's config; ranges too), "host:N",
// "host slots=N max_slots=M", each with user@ if wanted. Comments begin with '#'. A host that is
// repeated without slots has one slot for each time. Errors begin with "path:line: ".
Result<std::vector<HostSpec>> parseHostFile(std::string_view text, const std::string& path);

Result<std::vector<HostSpec>> readHostFile(const std::string& path);

}  // namespace farandole::launch::hosts
