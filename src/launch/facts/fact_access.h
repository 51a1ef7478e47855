// Reading facts that may come from another machine: a missing or malformed one is its default.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace farandole::launch::facts {

// Null if there is nothing at this path ("/machine/hostname").
const nlohmann::json& factAt(const nlohmann::json& facts, const std::string& path);

// Without control characters, at most 512 bytes: it is going to be printed.
std::string factText(const nlohmann::json& facts, const std::string& path);
// At most 1e18: it may be converted to an integer.
double factNumber(const nlohmann::json& facts, const std::string& path, double otherwise = 0);
bool factFlag(const nlohmann::json& facts, const std::string& path, bool otherwise = false);

// The same cleaning for any text.
std::string printable(const std::string& text);

// "64 MiB", "1.5 GiB"
std::string describeBytes(double bytes);

}  // namespace farandole::launch::facts
