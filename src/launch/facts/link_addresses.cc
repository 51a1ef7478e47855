#include "launch/facts/link_addresses.h"

#include "launch/facts/fact_access.h"

namespace farandole::launch::facts {

using nlohmann::json;

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
