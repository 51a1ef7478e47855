#include "launch/local/guardian.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "launch/mpi/scratch.h"
#include "process/process_limits.h"
#include "process/process_table.h"

namespace farandole::launch::local {
namespace {

// Kills and looks again until nobody is left: a process that forks while /proc is being read is
// found in a later round. Several clean rounds, because a process in the middle of execve shows no
// environment.
void endJob(const process::JobMarks& marks) {
  constexpr int kCleanRounds = 3;
  const auto marked = [&](pid_t pid) { return marks.on(pid); };
  const Deadline deadline = Deadline::after(std::chrono::seconds(60));
  for (int clean = 0; clean < kCleanRounds && !deadline.passed();) {
    marks.killGroup();
    const auto pids = process::processesThat(marked);
    for (const pid_t pid : pids) process::signalProcess(pid, SIGKILL, marked);
    clean = pids.empty() && marks.removeGroup() ? clean + 1 : 0;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

// Lets go of everything that could keep others waiting: the terminal, pipes, folders.
void detach(int pipe) {
  ::setsid();
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

[[noreturn]] void guard(int pipe, const process::JobMarks& marks,
                        const std::vector<std::string>& folders) {
  detach(pipe);
  process::JobMarks::disown();
  char nothing = 0;
  ssize_t n = 0;
  // No deadline: the kernel itself ends this wait when the launcher is gone.
  do {
    n = ::read(pipe, &nothing, 1);
  } while (n < 0 && errno == EINTR);
  endJob(marks);
  launch::mpi::removeScratch(folders);
  ::_exit(0);
}

}  // namespace

Result<Guardian> Guardian::start(const process::JobMarks& marks,
                                 const std::vector<std::string>& folders) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Status::fromErrno("cannot create a pipe", errno);
  UniqueFd read(ends[0]);
  UniqueFd write(ends[1]);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::close(write.release());
    guard(read.get(), marks, folders);
  }
  if (pid < 0) return process::cannotStartProcess("cannot start the guardian process", errno);
  return Guardian(pid, std::move(write));
}

void Guardian::dismiss() {
  if (pid_ <= 0) return;
  // It holds nothing that it would have to give back, and may be stopped (SIGSTOP).
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  pipe_.reset();
}

}  // namespace farandole::launch::local
