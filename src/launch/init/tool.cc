#include "launch/init/tool.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <thread>

#include "base/fd.h"

extern char** environ;

namespace farandole::init {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kMostOutput = 64 << 10;

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};

Result<Pipe> makePipe() {
  std::array<int, 2> fds{};
  if (::pipe2(fds.data(), O_CLOEXEC) != 0) return Status::fromErrno("pipe", errno);
  return Pipe{UniqueFd(fds[0]), UniqueFd(fds[1])};
}

// The children, killed and reaped at the end of their time at the latest.
class Children {
 public:
  Children() = default;
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;
  ~Children() {
    for (const pid_t pid : pids_) {
      if (pid > 0) ::kill(pid, SIGKILL);
    }
    for (const pid_t pid : pids_) {
      if (pid > 0) ::waitpid(pid, nullptr, 0);
    }
  }

  void add(pid_t pid) { pids_.push_back(pid); }

  // The pipeline's exit code, or -1 when time is over.
  int wait(Clock::time_point end) {
    int code = 0;
    for (std::size_t i = 0; i < pids_.size(); ++i) {
      int state = 0;
      pid_t done = 0;
      while ((done = ::waitpid(pids_[i], &state, WNOHANG)) == 0) {
        if (Clock::now() >= end) return -1;
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      }
      pids_[i] = 0;
      const int own = WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
      if (own != 0) code = own;  // the last one's, if that failed
    }
    return code;
  }

 private:
  std::vector<pid_t> pids_;
};

Result<pid_t> start(const std::vector<std::string>& words, int in, int out, int err) {
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, in, 0);
  ::posix_spawn_file_actions_adddup2(&actions, out, 1);
  ::posix_spawn_file_actions_adddup2(&actions, err, 2);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  sigset_t defaults;
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGPIPE);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &defaults);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  pid_t pid = 0;
  const int error = ::posix_spawnp(&pid, argv[0], &actions, &attributes, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  if (error == 0) return pid;
  // EACCES: some folder of PATH cannot be looked into, and no other has it.
  const bool fromPath = words[0].find('/') == std::string::npos;
  if (error == ENOENT || (error == EACCES && fromPath)) {
    return Status::unavailable(
        words[0] + " is not installed; on Debian and Ubuntu type: " + "sudo apt-get install " +
        (words[0] == "tar" ? "tar" : "openssh-client"));
  }
  return Status::fromErrno("cannot start " + words[0], error);
}

// Reads both pipes to their ends; false when time is over. More than kMostOutput is thrown away.
bool drain(Pipe& out, Pipe& err, ToolResult& result, Clock::time_point end) {
  std::array<pollfd, 2> fds{{{out.read.get(), POLLIN, 0}, {err.read.get(), POLLIN, 0}}};
  std::array<std::string*, 2> texts{&result.output, &result.errors};
  while (fds[0].fd >= 0 || fds[1].fd >= 0) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    if (left.count() <= 0) return false;
    const int ready =
        ::poll(fds.data(), fds.size(), static_cast<int>(std::min<long long>(left.count(), 1000)));
    if (ready < 0 && errno != EINTR) return false;
    if (ready <= 0) continue;
    for (std::size_t i = 0; i < fds.size(); ++i) {
      if (fds[i].fd < 0 || fds[i].revents == 0) continue;
      std::array<char, 4096> buffer{};
      const ssize_t got = ::read(fds[i].fd, buffer.data(), buffer.size());
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) {
        fds[i].fd = -1;
        continue;
      }
      const std::size_t room = kMostOutput - std::min(kMostOutput, texts[i]->size());
      texts[i]->append(buffer.data(), std::min(room, static_cast<std::size_t>(got)));
    }
  }
  return true;
}

}  // namespace

std::string ToolResult::lastError() const {
  std::string last;
  std::size_t begin = 0;
  while (begin < errors.size()) {
    auto end = errors.find_first_of("\r\n", begin);
    if (end == std::string::npos) end = errors.size();
    if (end > begin) last = errors.substr(begin, end - begin);
    begin = end + 1;
  }
  // What a remote machine says must not reach the terminal as control sequences.
  for (char& c : last) {
    if (static_cast<unsigned char>(c) < ' ' || c == 127) c = '?';
  }
  return last;
}

Result<ToolResult> runTools(const std::vector<std::vector<std::string>>& tools,
                            std::chrono::milliseconds limit) {
  const auto end = Clock::now() + limit;
  UniqueFd in(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!in) return Status::fromErrno("/dev/null", errno);
  auto errors = makePipe();
  if (!errors.ok()) return errors.status();
  Children children;
  Pipe last;
  for (const auto& words : tools) {
    auto out = makePipe();
    if (!out.ok()) return out.status();
    auto pid = start(words, in.get(), out->write.get(), errors->write.get());
    if (!pid.ok()) return pid.status();
    children.add(*pid);
    out->write.reset();
    if (&words == &tools.back()) {
      last = std::move(*out);
    } else {
      in = std::move(out->read);
    }
  }
  in.reset();
  errors->write.reset();
  ToolResult result;
  if (drain(last, *errors, result, end)) {
    result.exitCode = children.wait(end);
    if (result.exitCode >= 0) return result;
  }
  return Status::timeout(tools.back()[0] + " did not end within " +
                         std::to_string(limit.count() / 1000) + " s and was killed");
}

}  // namespace farandole::init
