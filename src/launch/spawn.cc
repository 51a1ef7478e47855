#include "launch/spawn.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

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

// Runs in the vfork child, on the parent's memory: system calls only, and no return.
[[noreturn]] void becomeRank(const SpawnRequest& request, char* const* argv, char* const* envp,
                             pid_t parent, int errorFd, const cpu_set_t& cpus) {
  ::setpgid(0, 0);
  // First line of defence against orphans; the guardian is the second.
  if (request.diesWithUs) ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (request.diesWithUs && ::getppid() != parent) ::_exit(1);
  if (::dup2(request.stdinFd, 0) == 0 && ::dup2(request.stdoutFd, 1) == 1 &&
      ::dup2(request.stderrFd, 2) == 2) {
    ::setrlimit(RLIMIT_NOFILE, &request.files);
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
  // A pipe rather than a shared variable: tools that turn vfork into fork (sanitizers) still work.
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Status::fromErrno("cannot create a pipe", errno);
  UniqueFd readEnd(ends[0]);
  UniqueFd writeEnd(ends[1]);
  const pid_t parent = ::getpid();
  // vfork costs the same however large this process is; fork copies its page tables.
  const pid_t pid = ::vfork();
  if (pid == 0) becomeRank(request, argv.data(), envp.data(), parent, writeEnd.get(), cpus);
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
