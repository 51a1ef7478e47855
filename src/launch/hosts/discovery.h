// Host discovery: a script of the user's that prints the hosts there are now.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "launch/hosts/host_spec.h"

namespace farandole::launch::hosts {

// Runs the script, an executable file, without a shell, and reads its lines "host" or "host:slots".
// Hosts without slots get slotsPerHost. No hosts is not an error: there may be some later. Errors
// name the script and carry the last line of its error output.
Result<std::vector<HostSpec>> discoverHosts(const std::string& script, int slotsPerHost,
                                            Deadline deadline);

// The reading part of it.
Result<std::vector<HostSpec>> parseDiscovered(std::string_view text, const std::string& script,
                                              int slotsPerHost);

}  // namespace farandole::launch::hosts
