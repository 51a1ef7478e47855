#include "launch/mpi/starter_process.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "launch/mpi/command.h"
#include "launch/mpi/scratch.h"
#include "launch/mpi/starter_environment.h"
#include "process/bounded_command.h"
#include "process/command_lookup.h"
#include "process/spawn.h"

extern char** environ;

namespace farandole::launch::mpi {
namespace {

constexpr std::size_t kKept = std::size_t{8} << 10;
constexpr auto kCoincidence = std::chrono::seconds(2);

// An executable that has no name, visible to our children through /proc as long as we live.
Result<UniqueFd> executableScript(const std::string& text) {
  UniqueFd fd(::memfd_create("farandole-mpi-ssh", MFD_CLOEXEC));
  if (!fd) return Status::fromErrno("cannot create a script for MPI's starter", errno);
  if (::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      ::fchmod(fd.get(), 0500) != 0) {
    return Status::fromErrno("cannot write a script for MPI's starter", errno);
  }
  // Reopened for reading: what is open for writing cannot be executed.
  const std::string path = "/proc/self/fd/" + std::to_string(fd.get());
  UniqueFd readable(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!readable) return Status::fromErrno("cannot open a script for MPI's starter", errno);
  return readable;
}

}  // namespace

StarterProcess::StarterProcess(Starter starter, const launch::plan::JobPlan& plan,
                               const launch::ssh::SshOptions& ssh, const std::string& treeId,
                               Duration startLimit)
    : starter_(std::move(starter)),
      ssh_(ssh),
      plan_(plan),
      lender_(lenderWords(
          treeId, process::ownProgram(), plan.job,
          static_cast<int>(std::chrono::ceil<std::chrono::seconds>(startLimit).count()))) {}

Status StarterProcess::start(const process::InheritedSignals& signals, const rlimit& files,
                             const process::JobMarks& marks) {
  auto script =
      executableScript(remoteShellScript(plan_, ssh_, starterEnvironment({}, environ).held));
  FARANDOLE_RETURN_IF_ERROR(script.status());
  scriptFd_ = std::move(*script);
  const std::string shell =
      "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(scriptFd_.get());
  const StarterCommand command = starterCommand(starter_, plan_, lender_, shell);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Status::fromErrno("cannot create a pipe", errno);
  output_.reset(ends[0]);
  const UniqueFd far(ends[1]);
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  const UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!null) return Status::fromErrno("cannot open /dev/null", errno);
  std::vector<std::string> environment = starterEnvironment(command.variables, environ).entries;
  useForStarter(plan_, environment);
  auto pid = process::spawnProcess({starter_.program, command.words, environment, null.get(),
                                    far.get(), far.get(), signals, files, true, nullptr, &marks});
  FARANDOLE_RETURN_IF_ERROR(pid.status());
  pid_ = *pid;
  return {};
}

void StarterProcess::read() {
  char buffer[4096];
  for (;;) {
    const ssize_t got = ::read(output_.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) return output_.reset();
    text_.append(buffer, static_cast<std::size_t>(got));
    if (text_.size() > kKept) text_.erase(0, text_.size() - kKept);
  }
}

bool StarterProcess::childEnded(pid_t pid, const siginfo_t& info) {
  if (pid != pid_ || pid_ <= 0) return false;
  pid_ = -1;
  ended_ = true;
  endedAt_ = Clock::now();
  waitStatus_ =
      info.si_code == CLD_EXITED ? W_EXITCODE(info.si_status, 0) : W_EXITCODE(0, info.si_status);
  if (output_) read();
  return true;
}

void StarterProcess::signal(int number) {
  if (pid_ <= 0) return;
  signalled_ = true;
  if (::kill(-pid_, number) != 0) ::kill(pid_, number);
}

std::optional<std::string> StarterProcess::failure(TimePoint now) const {
  if (!ended_ || now < endedAt_ + kCoincidence) return std::nullopt;
  return describe();
}

std::string StarterProcess::describe() const {
  const std::string last = process::lastLineOf(text_);
  return starter_.what + "'s starter (" + starter_.program + ") ended before the ranks, with " +
         process::describeEnd(waitStatus_) + (last.empty() ? "" : ": " + last);
}

}  // namespace farandole::launch::mpi
