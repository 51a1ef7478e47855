// Addresses under which hosts are reached from outside: "alpha=203.0.113.5,beta=203.0.113.6".
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/status.h"

namespace farandole::launch::hosts {

// In advice: the ports to pass on to a container where the user has named none. One for each rank
// of a host is enough.
inline constexpr char kPortsToPass[] = "29400-29431";

// Host and address of each, in the order typed; a host may have several. Every host must be one of
// `hosts`.
Result<std::vector<std::pair<std::string, std::string>>> parseAdvertised(
    const std::string& text, const std::vector<std::string>& hosts);

}  // namespace farandole::launch::hosts
