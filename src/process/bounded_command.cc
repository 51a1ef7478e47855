#include "process/bounded_command.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>

#include "base/fd.h"
#include "base/text.h"
#include "process/command_lookup.h"
#include "process/signals.h"
#include "process/spawn.h"

extern char** environ;

namespace farandole::process {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kMostErrors = std::size_t{64} << 10;
constexpr std::size_t kPiece = std::size_t{256} << 10;
constexpr std::size_t kPipeBytes = std::size_t{1} << 20;  // so that it is not we who limit
constexpr Duration kKillTime = std::chrono::seconds(1);

std::vector<std::string> environmentWith(
    const std::vector<std::pair<std::string, std::string>>& added) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const bool replaced = std::any_of(added.begin(), added.end(), [text](const auto& one) {
      return text.starts_with(one.first + "=");
    });
    if (!replaced) all.emplace_back(text);
  }
  for (const auto& [key, value] : added) all.push_back(key + "=" + value);
  return all;
}

int pollTime(Deadline deadline) {
  return static_cast<int>(
      std::chrono::ceil<milliseconds>(deadline.left(std::chrono::seconds(1))).count());
}

struct Pipe {
  UniqueFd read;
  UniqueFd write;

  bool open() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return false;
    read.reset(ends[0]);
    write.reset(ends[1]);
    return true;
  }
};

// A started program that leads a process group.
class Started {
 public:
  explicit Started(pid_t pid)
      : pid_(pid), pidfd_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))) {}
  Started(const Started&) = delete;
  Started& operator=(const Started&) = delete;
  ~Started() { reap(); }

  int pidfd() const { return pidfd_.get(); }
  bool ended() const { return ended_; }
  void sawEnd() { ended_ = true; }
  void signal(int number) const { ::kill(-pid_, number); }

  // Ends what is left of the group, then collects the program: waitpid's status. The order matters:
  // until it is collected, its number, which is the group's too, cannot become another's.
  int reap() {
    if (pid_ <= 0) return 0;
    signal(SIGKILL);
    ::kill(pid_, SIGKILL);
    int status = 0;
    for (const Deadline deadline = Deadline::after(kKillTime);;) {
      const pid_t reaped = ::waitpid(pid_, &status, WNOHANG);
      if (reaped == pid_ || (reaped < 0 && errno != EINTR) || deadline.passed()) break;
      pollfd end{pidfd_.get(), POLLIN, 0};
      ::poll(&end, 1, pidfd_ ? pollTime(deadline) : 2);
    }
    pid_ = 0;
    return status;
  }

 private:
  pid_t pid_;
  UniqueFd pidfd_;
  bool ended_ = false;
};

// One call of runCommand().
class CommandRun {
 public:
  explicit CommandRun(const CommandRequest& request)
      : request_(request), environment_(environmentWith(request.variables)), buffer_(kPiece) {}

  CommandEnd run(Deadline deadline) {
    if (!start()) return std::move(end_);
    if (!watch(deadline) && !end_.tooMuch) {
      end_.timedOut = true;
      if (request_.grace > Duration{}) {
        for (const Started& one : members_) one.signal(SIGTERM);
        watch(Deadline::after(request_.grace));
      }
    }
    // Also after a good end: a helper of the command (a proxy) must not live on.
    for (Started& one : members_) {
      if (const int status = one.reap(); status != 0) end_.waitStatus = status;
    }
    // What a killed command has written just before.
    readAll();
    if (end_.timedOut || end_.tooMuch) return std::move(end_);
    if (WIFSIGNALED(end_.waitStatus)) end_.signal = WTERMSIG(end_.waitStatus);
    if (WIFEXITED(end_.waitStatus)) end_.exitCode = WEXITSTATUS(end_.waitStatus);
    return std::move(end_);
  }

 private:
  bool failed(int error, Status why) {
    end_.startError = error;
    end_.start = std::move(why);
    return false;
  }
  bool failedCall(const std::string& what, int error) {
    return failed(error, Status::fromErrno(what, error));
  }

  bool start() {
    Pipe out;
    Pipe err;
    Pipe between;
    UniqueFd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!nothing) return failedCall("/dev/null", errno);
    const bool fed = !request_.feeder.empty();
    if (!out.open() || !err.open() || (fed && !between.open())) {
      return failedCall("cannot create a pipe", errno);
    }
    for (const Pipe* pipe : {&out, &err}) {
      ::fcntl(pipe->read.get(), F_SETFL, O_NONBLOCK);
      // Refused beyond a user's limit, which is no harm.
      ::fcntl(pipe->read.get(), F_SETPIPE_SZ, static_cast<int>(kPipeBytes));
    }
    const int in = request_.stdinFd >= 0 ? request_.stdinFd : nothing.get();
    end_.started = Clock::now();
    if (fed && !spawn(request_.feeder, "", in, between.write.get(), err.write.get())) return false;
    if (!spawn(request_.words, request_.program, fed ? between.read.get() : in, out.write.get(),
               err.write.get())) {
      return false;
    }
    out_ = std::move(out.read);
    err_ = std::move(err.read);
    return true;
  }

  bool spawn(const std::vector<std::string>& words, const std::string& program, int in, int out,
             int err) {
    std::string file = program;
    if (file.empty()) {
      auto found = findProgram(words.front());
      if (!found) {
        end_.missing = words.front();
        return failed(ENOENT, Status::unavailable("there is no program '" + words.front() + "'"));
      }
      file = std::move(*found);
    }
    InheritedSignals signals;
    ::sigemptyset(&signals.mask);
    signals.pipe.sa_handler = SIG_DFL;
    rlimit files{};
    ::getrlimit(RLIMIT_NOFILE, &files);
    auto pid = spawnProcess({file, words, environment_, in, out, err, signals, files});
    if (!pid.ok()) return failed(EACCES, pid.status());
    if (members_.emplace_back(*pid).pidfd() < 0) {
      return failedCall("cannot watch '" + file + "'", errno);
    }
    return true;
  }

  // Until all have ended (true), the deadline, or output that is too long.
  bool watch(Deadline deadline) {
    for (;;) {
      // Descriptors of streams that have ended are -1, which poll passes over.
      std::vector<pollfd> entries{{out_.get(), POLLIN, 0}, {err_.get(), POLLIN, 0}};
      for (const Started& one : members_) {
        entries.push_back({one.ended() ? -1 : one.pidfd(), POLLIN, 0});
      }
      ::poll(entries.data(), entries.size(), pollTime(deadline));
      bool ended = true;
      // Looked at before the last reading, so that nothing written before the end is missed.
      for (std::size_t i = 0; i < members_.size(); ++i) {
        if ((entries[i + 2].revents & POLLIN) != 0) members_[i].sawEnd();
        ended = ended && members_[i].ended();
      }
      if (ended) end_.ended = Clock::now();
      if (ended) {
        readAll();
      } else {
        readOut();
        readErr();
      }
      if (end_.tooMuch) return false;
      if (ended || deadline.passed()) return ended;
    }
  }

  // As much as pipes can hold: a stranger who got hold of them and writes for ever is not followed.
  void readAll() {
    for (std::size_t bytes = 0; bytes < kPipeBytes && out_;) {
      const std::size_t n = readOut();
      if (n == 0) break;
      bytes += n;
    }
    for (std::size_t bytes = 0; bytes < kPipeBytes && err_;) {
      const std::size_t n = readErr();
      if (n == 0) break;
      bytes += n;
    }
  }

  // One piece, if there is one: a fast writer must not keep us from looking at the clock.
  std::string_view readPiece(UniqueFd& pipe) {
    while (pipe) {
      const ssize_t n = ::read(pipe.get(), buffer_.data(), buffer_.size());
      if (n > 0) return {buffer_.data(), static_cast<std::size_t>(n)};
      if (n < 0 && errno == EINTR) continue;
      if (n == 0 || errno != EAGAIN) pipe.reset();
      break;
    }
    return {};
  }

  std::size_t readOut() {
    const std::string_view piece = readPiece(out_);
    if (piece.empty()) return 0;
    if (request_.output) {
      request_.output(piece);
      return piece.size();
    }
    const std::size_t room = request_.mostOutput - end_.out.size();
    if (piece.size() > room && request_.endsAtMost) end_.tooMuch = true;
    end_.out.append(piece.substr(0, room));
    return piece.size();
  }

  // The end of error output matters most.
  std::size_t readErr() {
    const std::string_view piece = readPiece(err_);
    end_.err.append(piece);
    if (end_.err.size() > kMostErrors) end_.err.erase(0, end_.err.size() - kMostErrors / 2);
    return piece.size();
  }

  const CommandRequest& request_;
  const std::vector<std::string> environment_;
  std::vector<char> buffer_;
  std::deque<Started> members_;
  UniqueFd out_;
  UniqueFd err_;
  CommandEnd end_;
};

}  // namespace

CommandEnd runCommand(const CommandRequest& request, Deadline deadline) {
  return CommandRun(request).run(deadline);
}

CommandEnd runBounded(const std::vector<std::string>& words, Deadline deadline,
                      std::size_t maxOutput) {
  CommandRequest request{words};
  request.mostOutput = maxOutput;
  return runCommand(request, deadline);
}

std::string describeEnd(int waitStatus) {
  if (WIFSIGNALED(waitStatus)) return signalName(WTERMSIG(waitStatus));
  return "exit code " + std::to_string(WEXITSTATUS(waitStatus));
}

std::string lastLineOf(const std::string& text) {
  constexpr std::size_t kMost = 200;
  std::string_view line = trimmed(text);
  line = trimmed(line.substr(line.rfind('\n') + 1));
  return oneLine(std::string(line.substr(0, kMost)));
}

}  // namespace farandole::process
