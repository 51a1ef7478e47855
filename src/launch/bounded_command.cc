#include "launch/bounded_command.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>

#include "base/fd.h"
#include "bootstrap/unix_socket.h"
#include "launch/spawn.h"

extern char** environ;

namespace farandole {
namespace {

// What a killed command's helpers may still hold open is not waited for longer than this.
constexpr Duration kAfterEnd = std::chrono::milliseconds(300);

std::string findOnPath(const std::string& name) {
  if (name.find('/') != std::string::npos) return ::access(name.c_str(), F_OK) == 0 ? name : "";
  const char* variable = std::getenv("PATH");
  std::string path = variable != nullptr ? variable : "/usr/bin:/bin";
  for (std::size_t from = 0; from <= path.size();) {
    const auto to = std::min(path.find(':', from), path.size());
    std::string file = path.substr(from, to - from) + "/" + name;
    if (to > from && ::access(file.c_str(), X_OK) == 0) return file;
    from = to + 1;
  }
  return {};
}

struct Pipe {
  UniqueFd read;
  UniqueFd write;
  bool open() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return false;
    read.reset(ends[0]);
    write.reset(ends[1]);
    return ::fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0;
  }
};

// False when the stream has ended.
bool drain(int fd, std::string& into, std::size_t limit) {
  std::array<char, 16384> buffer;
  for (;;) {
    const ssize_t got = ::read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno == EAGAIN;
    if (got == 0) return false;
    into.append(buffer.data(), std::min(static_cast<std::size_t>(got), limit - into.size()));
  }
}

// Both streams until they end or the deadline; true if they ended.
bool readStreams(Pipe& out, Pipe& err, CommandEnd& end, Deadline deadline, std::size_t limit) {
  std::array<pollfd, 2> streams{{{out.read.get(), POLLIN, 0}, {err.read.get(), POLLIN, 0}}};
  const std::array<std::string*, 2> texts{&end.out, &end.err};
  while (streams[0].fd >= 0 || streams[1].fd >= 0) {
    if (deadline.passed()) return false;
    ::poll(streams.data(), streams.size(), pollMilliseconds(deadline, std::chrono::seconds(1)));
    for (std::size_t i = 0; i < streams.size(); ++i) {
      if (streams[i].fd < 0 || streams[i].revents == 0) continue;
      if (!drain(streams[i].fd, *texts[i], limit)) streams[i].fd = -1;
    }
  }
  return true;
}

bool endedBy(pid_t pid, int& status, Deadline deadline) {
  for (;;) {
    const pid_t ended = ::waitpid(pid, &status, WNOHANG);
    if (ended == pid || (ended < 0 && errno != EINTR)) return true;
    if (deadline.passed()) return false;
    ::poll(nullptr, 0, 2);
  }
}

}  // namespace

CommandEnd runBounded(const std::vector<std::string>& argv, Deadline deadline,
                      std::size_t maxOutput) {
  CommandEnd end;
  const std::string program = findOnPath(argv.front());
  UniqueFd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  Pipe out;
  Pipe err;
  rlimit files{};
  InheritedSignals signals;
  ::sigemptyset(&signals.mask);
  signals.pipe.sa_handler = SIG_DFL;
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) environment.emplace_back(*entry);
  if (program.empty()) {
    end.startError = ENOENT;
    return end;
  }
  if (!nothing || !out.open() || !err.open() || ::getrlimit(RLIMIT_NOFILE, &files) != 0) {
    end.startError = errno;
    return end;
  }
  auto pid = spawnProcess({program, argv, environment, nothing.get(), out.write.get(),
                           err.write.get(), signals, files});
  if (!pid.ok()) {
    end.startError = EACCES;
    return end;
  }
  out.write.reset();
  err.write.reset();
  int status = 0;
  const bool quiet = readStreams(out, err, end, deadline, maxOutput);
  end.timedOut = !quiet || !endedBy(*pid, status, deadline);
  // Also after a good end: a helper of the command (a proxy) must not live on.
  ::kill(-*pid, SIGKILL);
  if (end.timedOut) {
    // An unkillable process (a dead network file system) is left to its parent's end.
    endedBy(*pid, status, Deadline::after(std::chrono::seconds(1)));
    readStreams(out, err, end, Deadline::after(kAfterEnd), maxOutput);
    return end;
  }
  if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
  if (WIFEXITED(status)) end.exitCode = WEXITSTATUS(status);
  return end;
}

}  // namespace farandole
