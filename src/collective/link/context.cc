#include "collective/link/context.h"

namespace farandole::collective::link {

std::string Context::nameOf(int member) const {
  const auto index = static_cast<std::size_t>(member);
  std::string name = "rank " + std::to_string(rankOf(member));
  if (index < options.hosts.size() && !options.hosts[index].empty()) {
    name += " on " + options.hosts[index];
  }
  return name;
}

}  // namespace farandole::collective::link
