#include "base/process_state.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "base/fd.h"

namespace farandole {
namespace {

std::string contentOf(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  char text[4096];
  const auto got = file ? ::read(file.get(), text, sizeof text) : 0;
  return got > 0 ? std::string(text, static_cast<std::size_t>(got)) : std::string();
}

// The state letter of /proc/PID/stat; '?' if it cannot be read.
char stateLetter(pid_t pid) {
  const std::string text = contentOf("/proc/" + std::to_string(pid) + "/stat");
  // "pid (name) S …": the name may contain anything, so look for its last parenthesis.
  const auto end = text.rfind(')');
  return end == std::string::npos || end + 2 >= text.size() ? '?' : text[end + 2];
}

// Lines are "hierarchy:controllers:path"; the second version's has number 0 and no controllers.
bool isFrozen(pid_t pid) {
  const std::string text = contentOf("/proc/" + std::to_string(pid) + "/cgroup");
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    const auto first = line.find(':');
    const auto second = first == line.npos ? line.npos : line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const std::string path(line.substr(second + 1));
    if (controllers == "freezer") {
      return contentOf("/sys/fs/cgroup/freezer" + path + "/freezer.state").starts_with("FROZEN");
    }
    if (controllers.empty() &&
        contentOf("/sys/fs/cgroup" + path + "/cgroup.events").find("frozen 1") !=
            std::string::npos) {
      return true;
    }
  }
  return false;
}

}  // namespace

Standstill standstillOf(pid_t pid) {
  switch (stateLetter(pid)) {
    case 'T': return Standstill::kSignal;
    case 't': return Standstill::kDebugger;
    // The kernel says of a frozen process that it sleeps.
    case 'S':
    case 'D': return isFrozen(pid) ? Standstill::kFrozen : Standstill::kNone;
    default: return Standstill::kNone;
  }
}

}  // namespace farandole
