#include "launch/hosts/captured_run.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <utility>

#include "base/fd.h"
#include "launch/hosts/text.h"
#include "launch/signals.h"
#include "launch/spawn.h"

extern char** environ;

namespace farandole {
namespace {

constexpr std::size_t kMostErr = 64u << 10;

struct Pipe {
  UniqueFd readEnd;
  UniqueFd writeEnd;
};

Result<Pipe> makePipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Status::fromErrno("cannot create a pipe", errno);
  Pipe pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return pipe;
}

// Owns a started program that leads a process group.
class Child {
 public:
  explicit Child(pid_t pid)
      : pid_(pid), pidfd_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))) {}
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (pid_ > 0) (void)reap();
  }

  int pidfd() const { return pidfd_.get(); }

  // Ends what is left of the group, then collects the program. The order matters: until it is
  // collected, its number, which is the group's too, cannot become somebody else's.
  Result<int> reap() {
    ::kill(-pid_, SIGKILL);
    ::kill(pid_, SIGKILL);
    int status = 0;
    pid_t reaped = 0;
    do {
      reaped = ::waitpid(pid_, &status, 0);
    } while (reaped < 0 && errno == EINTR);
    pid_ = -1;
    if (reaped < 0) return Status::fromErrno("cannot learn how the program ended", errno);
    return status;
  }

 private:
  pid_t pid_;
  UniqueFd pidfd_;
};

Result<pid_t> start(const std::string& program, const std::vector<std::string>& arguments,
                    int outFd, int errFd) {
  UniqueFd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!nothing) return Status::fromErrno("/dev/null", errno);
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) environment.emplace_back(*entry);
  InheritedSignals signals;
  sigemptyset(&signals.mask);
  signals.pipe.sa_handler = SIG_DFL;
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  return spawnProcess(
      {program, arguments, environment, nothing.get(), outFd, errFd, signals, files});
}

// Appends what is there now; closes the pipe at its end. False if `text` has become too long.
bool drain(UniqueFd& pipe, std::string& text, std::size_t most) {
  char buffer[16384];
  while (pipe) {
    const ssize_t n = ::read(pipe.get(), buffer, sizeof(buffer));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return true;
    if (n <= 0) {
      pipe.reset();
    } else {
      text.append(buffer, static_cast<std::size_t>(n));
      if (text.size() > most) return false;
    }
  }
  return true;
}

// Of error output only the end matters, and there may be any amount of it.
void drainKeepingEnd(UniqueFd& pipe, std::string& text) {
  for (int rounds = 0; rounds < 64 && !drain(pipe, text, kMostErr); ++rounds) {
    text.erase(0, text.size() - kMostErr / 2);
  }
}

}  // namespace

Result<CapturedRun> runCaptured(const std::string& program,
                                const std::vector<std::string>& arguments, Deadline deadline,
                                std::size_t most) {
  auto out = makePipe();
  auto err = makePipe();
  if (!out.ok()) return out.status();
  if (!err.ok()) return err.status();
  auto pid = start(program, arguments, out->writeEnd.get(), err->writeEnd.get());
  if (!pid.ok()) return pid.status();
  Child child(*pid);
  if (child.pidfd() < 0) return Status::fromErrno("cannot watch '" + program + "'", errno);
  out->writeEnd.reset();
  err->writeEnd.reset();
  CapturedRun run;
  for (bool ended = false; !ended;) {
    // Closed pipes are -1, which poll passes over.
    pollfd entries[] = {{child.pidfd(), POLLIN, 0},
                        {out->readEnd.get(), POLLIN, 0},
                        {err->readEnd.get(), POLLIN, 0}};
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline.left(std::chrono::seconds(1)));
    ::poll(entries, 3, static_cast<int>(left.count()));
    // Looked at before the last reading, so that nothing written before the end is missed.
    ended = (entries[0].revents & POLLIN) != 0;
    if (!drain(out->readEnd, run.out, most)) {
      return Status::invalid("printed more than " + std::to_string(most) + " bytes");
    }
    drainKeepingEnd(err->readEnd, run.err);
    if (!ended && deadline.passed()) return Status::timeout("has not ended in time");
  }
  auto status = child.reap();
  if (!status.ok()) return status.status();
  run.waitStatus = *status;
  return run;
}

std::string describeEnd(int waitStatus) {
  if (WIFSIGNALED(waitStatus)) return signalName(WTERMSIG(waitStatus));
  return "exit code " + std::to_string(WEXITSTATUS(waitStatus));
}

std::string lastLineOf(const std::string& text) {
  constexpr std::size_t kMost = 200;
  std::string_view line = trimmed(text);
  line = trimmed(line.substr(line.rfind('\n') + 1));
  std::string result;
  for (char c : line.substr(0, kMost)) {
    const auto code = static_cast<unsigned char>(c);  // char has no sign on arm64
    const bool control = code < 0x20 || code == 0x7f;
    result += control ? '?' : c;
  }
  return result;
}

}  // namespace farandole
