// Where a host may be reached, as its facts say.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace farandole::launch::facts {

// The addresses of a host's facts that lead to it from other machines, IPv4 first, at most six.
std::vector<std::string> linkAddresses(const nlohmann::json& facts);

}  // namespace farandole::launch::facts
