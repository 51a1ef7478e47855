#include "launch/spawn.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <string>

#include "base/fd.h"

namespace farandole {
namespace {

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> result;
  result.reserve(strings.size() + 1);
  for (const std::string& text : strings) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

// Ranks hold the memory; but the kernel counts what they share to nobody, and might take the
// launcher, which alone can say what has happened. So much of a machine's memory, in thousandths,
// a rank counts for in addition.
constexpr int kGoesFirst = 100;

constexpr char kOomScore[] = "/proc/self/oom_score_adj";

// What is to be written there for a rank, which then passes it on to its children.
std::string oomScoreOfRank() {
  int own = 0;
  std::ifstream(kOomScore) >> own;
  return std::to_string(std::min(own + kGoesFirst, 1000));
}

// In the vfork child. A failure (no /proc, read-only) is no reason not to run.
void setOomScore(const std::string& score) {
  const int fd = ::open(kOomScore, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  [[maybe_unused]] const ssize_t n = ::write(fd, score.data(), score.size());
  ::close(fd);
}

// Runs in the vfork child, on the parent's memory: system calls only, and no return.
[[noreturn]] void becomeRank(const SpawnRequest& request, char* const* argv, char* const* envp,
                             pid_t parent, int errorFd, const cpu_set_t& cpus,
                             const std::string& oomScore) {
  ::setpgid(0, 0);
  // First line of defence against orphans; the guardian is the second.
  if (request.diesWithUs) ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (request.diesWithUs && ::getppid() != parent) ::_exit(1);
  if (::dup2(request.stdinFd, 0) == 0 && ::dup2(request.stdoutFd, 1) == 1 &&
      ::dup2(request.stderrFd, 2) == 2) {
    ::setrlimit(RLIMIT_NOFILE, &request.files);
    if (request.goesFirst) setOomScore(oomScore);
    if (CPU_COUNT(&cpus) > 0) ::sched_setaffinity(0, sizeof(cpus), &cpus);
    ::sigaction(SIGPIPE, &request.signals.pipe, nullptr);
    ::sigprocmask(SIG_SETMASK, &request.signals.mask, nullptr);
    ::execve(request.program.c_str(), argv, envp);
  }
  const int error = errno;
  [[maybe_unused]] const ssize_t n = ::write(errorFd, &error, sizeof(error));
  ::_exit(127);
}

}  // namespace

Result<pid_t> spawnProcess(const SpawnRequest& request) {
  const std::vector<char*> argv = pointers(request.arguments);
  const std::vector<char*> envp = pointers(request.environment);
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  for (const int cpu : request.cpus == nullptr ? std::vector<int>() : *request.cpus) {
    if (cpu >= 0 && cpu < CPU_SETSIZE) CPU_SET(cpu, &cpus);
  }
  const std::string oomScore = request.goesFirst ? oomScoreOfRank() : std::string();
  // A pipe rather than a shared variable: tools that turn vfork into fork (sanitizers) still work.
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Status::fromErrno("cannot create a pipe", errno);
  UniqueFd readEnd(ends[0]);
  UniqueFd writeEnd(ends[1]);
  const pid_t parent = ::getpid();
  // vfork costs the same however large this process is; fork copies its page tables.
  const pid_t pid = ::vfork();
  if (pid == 0)
    becomeRank(request, argv.data(), envp.data(), parent, writeEnd.get(), cpus, oomScore);
  if (pid < 0) return Status::fromErrno("cannot create a process", errno);
  writeEnd.reset();
  int error = 0;
  ssize_t n = 0;
  do {
    n = ::read(readEnd.get(), &error, sizeof(error));
  } while (n < 0 && errno == EINTR);
  if (n != static_cast<ssize_t>(sizeof(error))) return pid;
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  if (error == ENOEXEC) {
    return Status::invalid("'" + request.program +
                           "' is neither a program nor a script with a #! line: name its "
                           "interpreter, for example: sh " +
                           request.program);
  }
  return Status::fromErrno("cannot execute '" + request.program + "'", error);
}

}  // namespace farandole
