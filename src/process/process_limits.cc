#include "process/process_limits.h"

#include <sys/resource.h>

#include <cerrno>
#include <cstdlib>
#include <string>

#include "process/own_cgroups.h"
#include "process/process_table.h"

namespace farandole::process {
namespace {

// The first pids.max, from our own group outwards, that leaves no room; "" if all do.
std::string fullGroup() {
  for (const OwnCgroup& group : ownCgroups()) {
    if (!group.controller.empty() && group.controller != "pids") continue;
    std::string folder = group.folder();
    for (; folder.size() >= group.mount.size(); folder.resize(folder.rfind('/'))) {
      const std::string most = readProcFile(folder + "/pids.max");  // a number, or "max"
      const long limit = std::atol(most.c_str());
      const long used = std::atol(readProcFile(folder + "/pids.current").c_str());
      if (limit > 0 && used >= limit) return folder + "/pids.max, " + std::to_string(limit);
    }
  }
  return {};
}

}  // namespace

Status cannotStartProcess(std::string_view what, int error) {
  Status status = Status::fromErrno(what, error);
  if (error != EAGAIN) return status;
  const std::string fewer = "; raise it, or start fewer ranks";
  const std::string counted = ", threads included";
  if (const std::string group = fullGroup(); !group.empty()) {
    return Status(status.code(), status.message() + ": the control group has as many processes" +
                                     counted + ", as it may have (" + group + ")" + fewer);
  }
  rlimit processes{};
  const bool limited =
      ::getrlimit(RLIMIT_NPROC, &processes) == 0 && processes.rlim_cur != RLIM_INFINITY;
  return Status(
      status.code(),
      status.message() + ": " +
          (limited ? "this user has as many processes" + counted + ", as `ulimit -u` allows (" +
                         std::to_string(processes.rlim_cur) + ")"
                   : "the machine has as many processes" + counted +
                         ", as kernel.pid_max and kernel.threads-max allow") +
          fewer);
}

}  // namespace farandole::process
