#include "bench/launch_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/fd.h"
#include "launch/command_lookup.h"
#include "launch/hosts/captured_run.h"
#include "launch/signals.h"
#include "launch/spawn.h"

extern char** environ;

namespace farandole::bench {
namespace {

using std::chrono::milliseconds;

constexpr auto kTermTime = milliseconds(3000);
constexpr std::size_t kBuffer = 256u << 10;
constexpr int kPipeBytes = 1 << 20;  // so that it is not the bench that limits
constexpr off_t kErrorTail = 4096;

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
  for (const auto& [key, value] : added) all.push_back(fmt::format("{}={}", key, value));
  return all;
}

// A started command with its descriptors; leads a process group.
class Running {
 public:
  ~Running() { (void)reap(); }
  Running() = default;
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  Status start(const TimedCommand& command) {
    auto found = lookUpCommand(command.words);
    if (!found.ok()) return found.status();
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return Status::fromErrno("cannot create a pipe", errno);
    output_.reset(ends[0]);
    UniqueFd far(ends[1]);
    ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
    ::fcntl(ends[0], F_SETPIPE_SZ, kPipeBytes);  // refused beyond a user's limit: no matter
    const UniqueFd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    errors_.reset(::memfd_create("farandole-bench-errors", MFD_CLOEXEC));
    if (!nothing || !errors_) return Status::fromErrno("cannot open /dev/null or a memfd", errno);
    const auto environment = environmentWith(command.environment);
    InheritedSignals signals;
    sigemptyset(&signals.mask);
    signals.pipe.sa_handler = SIG_DFL;
    rlimit files{};
    ::getrlimit(RLIMIT_NOFILE, &files);
    const int in = command.stdinFd >= 0 ? command.stdinFd : nothing.get();
    buffer_.resize(kBuffer);
    started_ = Clock::now();
    auto pid = spawnProcess({found->program, found->arguments, environment, in, far.get(),
                             errors_.get(), signals, files});
    if (!pid.ok()) return pid.status();
    pid_ = *pid;
    pidfd_.reset(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
    return pidfd_ ? Status() : Status::fromErrno("cannot watch a process", errno);
  }

  // Until the end or the deadline; whether it has ended.
  bool watch(const std::function<void(std::string_view)>& output, const Deadline& deadline) {
    while (true) {
      pollfd entries[] = {{pidfd_.get(), POLLIN, 0}, {output_.get(), POLLIN, 0}};
      const auto left = std::chrono::ceil<milliseconds>(deadline.left(std::chrono::seconds(1)));
      ::poll(entries, 2, static_cast<int>(left.count()));
      const bool ended = (entries[0].revents & POLLIN) != 0;
      if (ended) run_.ended = sinceStart();
      // Also after the end: what was written before it is in the pipe by now.
      if (!drain(output, ended)) output_.reset();
      if (ended || deadline.passed()) return ended;
    }
  }

  void askToEnd() const { ::kill(-pid_, SIGTERM); }

  // Ends what is left of the group before the number can be another's; returns waitpid's status.
  int reap() {
    if (pid_ <= 0) return 0;
    ::kill(-pid_, SIGKILL);
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = 0;
    return status;
  }

  const TimedRun& run() const { return run_; }

  std::string lastWords() const {
    const off_t size = ::lseek(errors_.get(), 0, SEEK_END);
    if (size <= 0) return {};
    std::string tail(static_cast<std::size_t>(std::min(size, kErrorTail)), '\0');
    const ssize_t n =
        ::pread(errors_.get(), tail.data(), tail.size(), std::max<off_t>(0, size - kErrorTail));
    tail.resize(static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
    const std::string line = lastLineOf(tail);
    return line.empty() ? line : ": " + line;
  }

 private:
  double sinceStart() const {
    return std::chrono::duration<double>(Clock::now() - started_).count();
  }

  // False at the end of the output. Several pieces at a time only after the end: else a fast writer
  // would keep us from looking at the clock.
  bool drain(const std::function<void(std::string_view)>& output, bool everything) {
    while (output_) {
      const ssize_t n = ::read(output_.get(), buffer_.data(), buffer_.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return errno == EAGAIN;
      if (n == 0) return false;
      run_.lastByte = sinceStart();
      if (run_.firstByte == 0) run_.firstByte = run_.lastByte;
      output({buffer_.data(), static_cast<std::size_t>(n)});
      if (!everything) break;
    }
    return true;
  }

  pid_t pid_ = 0;
  UniqueFd pidfd_;
  UniqueFd output_;
  UniqueFd errors_;
  std::vector<char> buffer_;
  TimePoint started_;
  TimedRun run_;
};

}  // namespace

Result<TimedRun> runTimed(const TimedCommand& command,
                          const std::function<void(std::string_view)>& output, Deadline deadline) {
  Running running;
  FARANDOLE_RETURN_IF_ERROR(running.start(command));
  if (!running.watch(output, deadline)) {
    running.askToEnd();
    running.watch([](std::string_view) {}, Deadline::after(kTermTime));
    running.reap();
    return Status::timeout(
        fmt::format("{} has not ended in time{}", command.words[0], running.lastWords()));
  }
  const int status = running.reap();
  if (status == 0) return running.run();
  return Status::unavailable(fmt::format("{} ended with {}{}", command.words[0],
                                         describeEnd(status), running.lastWords()));
}

}  // namespace farandole::bench
