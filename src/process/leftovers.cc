#include "process/leftovers.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process/process_table.h"

namespace farandole::process {

void Leftovers::adoptOrphans() { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }

// As process 1 of a container we are the parent of everybody's orphans, not only of our ranks'.
bool Leftovers::isStranger(pid_t child) const { return ::getpid() == 1 && !marks_.on(child); }

bool Leftovers::any(pid_t guardian) const {
  siginfo_t info{};
  if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0) return false;
  for (const pid_t pid : ownChildren()) {
    if (pid != guardian && !isStranger(pid)) return true;
  }
  return false;
}

void Leftovers::signalAll(int signal, pid_t guardian) {
  const pid_t self = ::getpid();
  const auto isOurs = [&](pid_t pid) {
    return pid != guardian && (marks_.on(pid) || (self != 1 && descendsFrom(pid, self)));
  };
  for (const pid_t pid : processesThat(isOurs)) {
    const std::string name = processName(pid);
    if (!signalProcess(pid, signal, isOurs)) continue;
    if (seen_.insert(pid).second) names_.insert(name);
    // A stopped process would not act on it.
    if (signal != SIGKILL) signalProcess(pid, SIGCONT, isOurs);
  }
}

std::string Leftovers::describe() const {
  if (names_.empty()) return {};
  const auto count = names_.size();
  std::string text = std::to_string(count) + (count == 1 ? " process (" : " processes (");
  std::size_t listed = 0;
  for (const std::string& name : names_) {
    if (listed == 8) return text + ", …)";
    text += (listed++ > 0 ? ", " : "") + name;
  }
  return text + ")";
}

}  // namespace farandole::process
