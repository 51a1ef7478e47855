#include "launch/hosts/advertised.h"

#include <algorithm>
#include <string_view>

namespace farandole::launch::hosts {

Result<std::vector<std::pair<std::string, std::string>>> parseAdvertised(
    const std::string& text, const std::vector<std::string>& hosts) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (std::string_view rest = text; !rest.empty();) {
    const auto comma = std::min(rest.find(','), rest.size());
    const std::string_view word = rest.substr(0, comma);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    const auto equals = word.find('=');
    const bool known = equals != word.npos &&
                       std::find(hosts.begin(), hosts.end(), word.substr(0, equals)) != hosts.end();
    if (!known || equals + 1 == word.size()) {
      return Status::invalid("--advertise " + std::string(word) +
                             ": expected HOST=ADDRESS with a host of this job");
    }
    pairs.emplace_back(word.substr(0, equals), word.substr(equals + 1));
  }
  return pairs;
}

}  // namespace farandole::launch::hosts
