// Reading facts that may come from another machine: a missing or malformed one is its default.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace farandole::launch::facts {

// Null if there is nothing at this path ("/machine/hostname").
const nlohmann::json& factAt(const nlohmann::json& facts, const std::string& path);

// A text without control characters, at most 512 bytes: it is going to be printed.
std::string factText(const nlohmann::json& facts, const std::string& path);
// A number of at most 1e18: it may be converted to an integer.
double factNumber(const nlohmann::json& facts, const std::string& path, double otherwise = 0);
bool factFlag(const nlohmann::json& facts, const std::string& path, bool otherwise = false);

// The addresses of a host's facts that lead to it from other machines, IPv4 first, at most six.
std::vector<std::string> linkAddresses(const nlohmann::json& facts);

// Any text, cleaned like those of facts.
std::string printable(const std::string& text);

// "64 MiB", "1.5 GiB"
std::string describeBytes(double bytes);

}  // namespace farandole::launch::facts
