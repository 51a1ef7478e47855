#include "process/own_cgroups.h"

#include <string_view>

#include "process/process_table.h"

namespace farandole::process {

std::vector<OwnCgroup> ownCgroups() {
  const std::string root = "/sys/fs/cgroup";
  const std::string table = readProcFile("/proc/self/cgroup");
  std::vector<OwnCgroup> found;
  for (std::size_t from = 0; from < table.size();) {  // hierarchy-id:controllers:path
    const auto to = std::min(table.find('\n', from), table.size());
    const std::string_view line(table.data() + from, to - from);
    from = to + 1;
    const auto first = line.find(':');
    const auto second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string kind(line.substr(first + 1, second - first - 1));
    const std::string path(line.substr(second + 1));
    if (!path.starts_with('/') || path.find("/..") != std::string::npos) continue;
    if (kind.empty()) {
      found.push_back({"", root + "/unified", path});  // beside version 1
      found.push_back({"", root, path});
    } else {
      const bool named = kind.starts_with("name=");
      found.push_back({kind, root + "/" + (named ? kind.substr(5) : kind), path});
    }
  }
  return found;
}

}  // namespace farandole::process
