#include "launch/facts/fact_access.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace farandole::launch::facts {

using nlohmann::json;
namespace {

// No fact is larger; and what is smaller fits into every integer of 64 bits.
constexpr double kLargest = 1e18;

}  // namespace

const json& factAt(const json& facts, const std::string& path) {
  static const json kNothing;
  const json* at = &facts;
  for (std::size_t from = 1; from <= path.size();) {
    const auto to = std::min(path.find('/', from), path.size());
    const std::string key = path.substr(from, to - from);
    if (!at->is_object()) return kNothing;
    const auto found = at->find(key);
    if (found == at->end()) return kNothing;
    at = &*found;
    from = to + 1;
  }
  return *at;
}

std::string printable(const std::string& text) {
  std::string clean;
  for (const char c : text.substr(0, 512)) {
    const auto byte = static_cast<unsigned char>(c);
    clean += byte < 0x20 || byte == 0x7f ? ' ' : c;
  }
  return clean;
}

std::string factText(const json& facts, const std::string& path) {
  const json& value = factAt(facts, path);
  return value.is_string() ? printable(value.get_ref<const std::string&>()) : "";
}

double factNumber(const json& facts, const std::string& path, double otherwise) {
  const json& value = factAt(facts, path);
  const double number = value.is_number() ? value.get<double>() : otherwise;
  return std::abs(number) <= kLargest ? number : otherwise;
}

bool factFlag(const json& facts, const std::string& path, bool otherwise) {
  const json& value = factAt(facts, path);
  return value.is_boolean() ? value.get<bool>() : otherwise;
}

std::string describeBytes(double bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  bytes = std::clamp(bytes, -kLargest, kLargest);
  int unit = 0;
  while (bytes >= 1024 && unit < 4) {
    bytes /= 1024;
    ++unit;
  }
  char text[48];
  const bool whole = bytes == static_cast<double>(static_cast<long long>(bytes)) || unit == 0;
  std::snprintf(text, sizeof(text), whole ? "%.0f %s" : "%.1f %s", bytes, kUnits[unit]);
  return text;
}

std::vector<std::string> linkAddresses(const json& facts) {
  constexpr std::size_t kMostAddresses = 6;
  std::vector<std::string> fours;
  std::vector<std::string> sixes;
  const json& interfaces = factAt(facts, "/interfaces");
  for (const json& one : interfaces.is_array() ? interfaces : json::array()) {
    const std::string kind = factText(one, "/kind");
    if (kind == "loopback" || kind == "container-bridge" || !factFlag(one, "/up")) continue;
    const json& addresses = factAt(one, "/addresses");
    for (const json& address : addresses.is_array() ? addresses : json::array()) {
      const std::string text = factText(address, "/address");
      if (text.empty() || text.starts_with("fe80:")) continue;
      (text.find(':') == std::string::npos ? fours : sixes).push_back(text);
    }
  }
  fours.insert(fours.end(), sixes.begin(), sixes.end());
  if (fours.size() > kMostAddresses) fours.resize(kMostAddresses);
  return fours;
}

}  // namespace farandole::launch::facts
