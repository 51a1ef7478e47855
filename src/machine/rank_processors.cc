#include "machine/rank_processors.h"

#include <sched.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>

namespace farandole::machine {
namespace {

// Returns the pid in this process's pid namespace; 0 if the process is not there, or not any more.
pid_t pidOf(int pidfd) {
  std::ifstream file("/proc/self/fdinfo/" + std::to_string(pidfd));
  constexpr std::string_view kField = "Pid:";
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(kField)) continue;
    return static_cast<pid_t>(std::max(0L, std::strtol(line.c_str() + kField.size(), nullptr, 10)));
  }
  return 0;
}

}  // namespace

int processorsTogether(std::span<const UniqueFd> pidfds) {
  cpu_set_t all;
  CPU_ZERO(&all);
  // This fails on machines with more than 1024 processors, where no rank is crowded.
  if (::sched_getaffinity(0, sizeof(all), &all) != 0) return INT_MAX;
  for (const UniqueFd& pidfd : pidfds) {
    const pid_t pid = pidfd ? pidOf(pidfd.get()) : 0;
    cpu_set_t theirs;
    CPU_ZERO(&theirs);
    if (pid <= 0 || ::sched_getaffinity(pid, sizeof(theirs), &theirs) != 0) continue;
    CPU_OR(&all, &all, &theirs);
  }
  return std::max(1, CPU_COUNT(&all));
}

}  // namespace farandole::machine
