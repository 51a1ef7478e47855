#include "launch/guardian.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "base/clock.h"
#include "launch/mpi/scratch.h"
#include "launch/process_table.h"

extern char** environ;

namespace farandole {
namespace {

constexpr char kDismissed = 'd';

// Kills and looks again until nobody is left: a process that forks while /proc is being read is
// found in a later round. Several clean rounds, because a process in the middle of execve shows no
// environment.
void endJob(const std::string& job) {
  constexpr int kCleanRounds = 3;
  const Deadline deadline = Deadline::after(std::chrono::seconds(60));
  for (int clean = 0; clean < kCleanRounds && !deadline.passed();) {
    const auto pids = processesOfJob(job);
    for (const pid_t pid : pids) ::kill(pid, SIGKILL);
    clean = pids.empty() ? clean + 1 : 0;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

// If this launcher is itself part of a job, its guardian must not carry that job's mark, or the
// outer guardian would end it before it has done its work. /proc shows this very memory.
void dropInheritedMark() {
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    if (std::strncmp(*entry, "FARANDOLE_JOB=", 14) == 0) std::memset(*entry, '_', 13);
  }
}

// Lets go of everything that could keep others waiting: the terminal, pipes, folders.
void detach(int pipe) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGTSTP, SIGUSR1, SIGUSR2}) {
    ::signal(signal, SIG_IGN);
  }
  ::prctl(PR_SET_NAME, "farandole-guard");
  if (::chdir("/") != 0) ::_exit(1);
  const int null = ::open("/dev/null", O_RDWR);
  for (int fd = 0; fd < 3; ++fd) ::dup2(null, fd);
  if (pipe > 3) ::close_range(3, static_cast<unsigned>(pipe) - 1, 0);
  ::close_range(static_cast<unsigned>(pipe) + 1, ~0U, 0);
}

[[noreturn]] void guard(int pipe, const std::string& job, const std::vector<std::string>& folders) {
  detach(pipe);
  dropInheritedMark();
  char message = 0;
  ssize_t n = 0;
  // No deadline: the kernel itself ends this wait when the launcher is gone.
  do {
    n = ::read(pipe, &message, 1);
  } while (n < 0 && errno == EINTR);
  if (n != 1 || message != kDismissed) {
    endJob(job);
    mpi::removeScratch(folders);
  }
  ::_exit(0);
}

// Runs in the vfork child, on the parent's memory, which it must not change.
[[noreturn]] void becomeBetween(int readEnd, int writeEnd, const std::string& job,
                                const std::vector<std::string>& folders) {
  ::close(writeEnd);
  ::setsid();
  const pid_t guardian = ::fork();
  if (guardian == 0) guard(readEnd, job, folders);
  ::_exit(guardian < 0 ? errno : 0);
}

}  // namespace

Result<Guardian> Guardian::start(const std::string& job, const std::vector<std::string>& folders) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Status::fromErrno("cannot create a pipe", errno);
  UniqueFd read(ends[0]);
  UniqueFd write(ends[1]);
  // When a job is started again we adopt orphans already: the guardian must not become our child,
  // or it would be ended as something that the ranks left behind. See Leftovers::adoptOrphans.
  ::prctl(PR_SET_CHILD_SUBREAPER, 0);
  // vfork: our page tables are copied once, for the guardian itself.
  const pid_t between = ::vfork();
  if (between == 0) becomeBetween(ends[0], ends[1], job, folders);
  if (between < 0) return Status::fromErrno("cannot start the guardian process", errno);
  int status = 0;
  while (::waitpid(between, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return Status::fromErrno("cannot start the guardian process",
                             WIFEXITED(status) ? WEXITSTATUS(status) : ECHILD);
  }
  return Guardian(std::move(write));
}

void Guardian::dismiss() {
  if (!pipe_) return;
  // If the guardian has been killed, this fails with EPIPE (ignored as a signal), and all is well.
  [[maybe_unused]] const ssize_t n = ::write(pipe_.get(), &kDismissed, 1);
  pipe_.reset();
}

}  // namespace farandole
