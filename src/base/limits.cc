#include "base/limits.h"

#include <fcntl.h>
#include <sys/resource.h>

#include <cerrno>
#include <fstream>

namespace farandole {
namespace {

std::string limitOf(decltype(RLIMIT_NOFILE) resource) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0) return "an unknown number of";
  return limit.rlim_cur == RLIM_INFINITY ? "any number of" : std::to_string(limit.rlim_cur);
}

// The number in pids.max of this process's own group, or empty: there is none, or it cannot be
// read. The path may name folders outside of this container's view, which is then the root.
std::string containerTasks() {
  std::ifstream groups("/proc/self/cgroup");
  std::string line;
  while (std::getline(groups, line)) {  // hierarchy-id:controllers:path
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first == std::string::npos ? first : first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (!controllers.empty() && controllers.find("pids") == std::string::npos) continue;
    const std::string root = controllers.empty() ? "/sys/fs/cgroup" : "/sys/fs/cgroup/pids";
    for (const std::string& path : {line.substr(second + 1), std::string()}) {
      std::ifstream file(root + path + "/pids.max");
      std::string most;
      if (file >> most && most != "max") return most;
    }
  }
  return {};
}

}  // namespace

std::string describeFileLimit() {
  return "this process may have " + limitOf(RLIMIT_NOFILE) + " open files (ulimit -n)";
}

std::string describeTaskLimits() {
  const std::string container = containerTasks();
  return "this user may have " + limitOf(RLIMIT_NPROC) + " processes and threads (ulimit -u)" +
         (container.empty() ? "" : ", this container " + container + " (pids.max)");
}

bool canOpen(std::size_t files) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return true;
  // The limit is on descriptor numbers. This needs no descriptor itself, unlike reading /proc.
  for (rlim_t fd = 0; fd < limit.rlim_cur && files > 0; ++fd) {
    if (::fcntl(static_cast<int>(fd), F_GETFD) < 0 && errno == EBADF) --files;
  }
  return files == 0;
}

}  // namespace farandole
