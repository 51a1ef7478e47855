#include "launch/leftovers.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch/process_table.h"

namespace farandole {

void Leftovers::adoptOrphans() { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }

bool Leftovers::haveChildren() {
  siginfo_t info{};
  return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

void Leftovers::signalAll(int signal) {
  std::set<pid_t> targets;
  for (const pid_t pid : descendantsOf(::getpid())) targets.insert(pid);
  for (const pid_t pid : processesOfJob(job_)) targets.insert(pid);
  for (const pid_t pid : targets) {
    if (seen_.insert(pid).second) names_.insert(processName(pid));
    ::kill(pid, signal);
    // A stopped process would not act on it.
    if (signal != SIGKILL) ::kill(pid, SIGCONT);
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

}  // namespace farandole
