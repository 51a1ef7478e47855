#include "multiproc/core/job.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "paths.h"

extern char** environ;

namespace farandole::test {
namespace {

using test::paths::kCoreRank;

constexpr const char* kHost = "testhost";
constexpr const char* kSecret = "00112233445566778899aabbccddeeff";

std::string freshJobName() {
  static std::atomic<int> count{0};
  return "core-" + std::to_string(::getpid()) + "-" + std::to_string(count.fetch_add(1));
}

[[noreturn]] void giveUp(const std::string& what, int error) {
  throw std::runtime_error(what + ": " + std::strerror(error));
}

// A job around the tests must not be seen by the ranks.
Job::Environment inheritedEnvironment() {
  Job::Environment variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text(*entry);
    const auto equals = text.find('=');
    if (equals == std::string::npos || text.starts_with("FARANDOLE_")) continue;
    variables[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return variables;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (auto& text : strings) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

class SpawnSettings {
 public:
  explicit SpawnSettings(int output) {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawn_file_actions_addopen(&actions_, 0, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions_, output, 1);
    ::posix_spawn_file_actions_adddup2(&actions_, output, 2);
    ::posix_spawnattr_init(&attributes_);
    // A group of its own, so that a rank's children can be ended with it.
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETPGROUP);
    ::posix_spawnattr_setpgroup(&attributes_, 0);
  }
  ~SpawnSettings() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  const posix_spawn_file_actions_t* actions() const { return &actions_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

}  // namespace

Job::Job(Options options) : job_(freshJobName()), ranks_(static_cast<std::size_t>(options.ranks)) {
  auto agent = bootstrap::AgentServer::start({job_, kSecret, options.ranks, kHost});
  if (!agent.ok()) throw std::runtime_error(agent.status().message());
  agent_ = std::move(agent).value();
  stop_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stop_) giveUp("eventfd", errno);
  try {
    for (int rank = 0; rank < options.ranks; ++rank) spawn(rank, options);
  } catch (...) {
    for (const auto& rank : ranks_) {
      if (rank.pid <= 0) continue;
      ::kill(-rank.pid, SIGKILL);
      ::waitpid(rank.pid, nullptr, 0);
    }
    throw;
  }
  watcher_ = std::thread([this] { watch(); });
}

Job::~Job() {
  finish(std::chrono::milliseconds::zero());
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(stop_.get(), &one, sizeof one);
  watcher_.join();
  // Children that the ranks have forked.
  for (const auto& rank : ranks_) ::kill(-rank.pid, SIGKILL);
}

void Job::spawn(int rank, const Options& options) {
  Environment variables = inheritedEnvironment();
  const std::string number = std::to_string(rank);
  const std::string size = std::to_string(options.ranks);
  for (const auto& [name, value] : Environment{{"FARANDOLE_RANK", number},
                                               {"FARANDOLE_SIZE", size},
                                               {"FARANDOLE_LOCAL_RANK", number},
                                               {"FARANDOLE_LOCAL_SIZE", size},
                                               {"FARANDOLE_HOST", kHost},
                                               {"FARANDOLE_JOB", job_},
                                               {"FARANDOLE_AGENT", agent_->address()},
                                               {"FARANDOLE_SECRET", kSecret}}) {
    variables[name] = value;
  }
  for (const auto& [name, value] : options.environment) variables[name] = value;
  std::vector<std::string> environment;
  for (const auto& [name, value] : variables) environment.push_back(name + "=" + value);
  std::vector<std::string> arguments{kCoreRank};
  arguments.insert(arguments.end(), options.arguments.begin(), options.arguments.end());

  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) giveUp("pipe", errno);
  Rank& started = ranks_[static_cast<std::size_t>(rank)];
  started.output.reset(ends[0]);
  const UniqueFd writeEnd(ends[1]);
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  const SpawnSettings settings(writeEnd.get());
  pid_t pid = -1;
  const int error = ::posix_spawn(&pid, kCoreRank, settings.actions(), settings.attributes(),
                                  pointers(arguments).data(), pointers(environment).data());
  if (error != 0) giveUp("cannot start " + std::string(kCoreRank), error);
  started.pid = pid;
  started.pidfd.reset(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!started.pidfd) giveUp("pidfd_open", errno);
}

void Job::watch() {
  for (;;) {
    std::vector<pollfd> polled{{stop_.get(), POLLIN, 0}};
    for (const auto& rank : ranks_) {
      // poll skips negative descriptors.
      polled.push_back({rank.output.get(), POLLIN, 0});
      polled.push_back({rank.pidfd.get(), POLLIN, 0});
    }
    if (::poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR) return;
    if (polled[0].revents != 0) return;
    for (int i = 0; i < size(); ++i) {
      const auto at = static_cast<std::size_t>(i);
      if (polled[1 + 2 * at].revents != 0) drain(ranks_[at]);
      if (polled[2 + 2 * at].revents != 0) reap(i);
    }
    changed_.notify_all();
  }
}

void Job::drain(Rank& rank) {
  char text[4096];
  for (;;) {
    const ssize_t got = ::read(rank.output.get(), text, sizeof text);
    if (got < 0 && errno == EINTR) continue;
    if (got == 0) rank.output.reset();
    if (got <= 0) return;
    const std::lock_guard lock(mutex_);
    rank.result.output.append(text, static_cast<std::size_t>(got));
  }
}

void Job::reap(int number) {
  Rank& rank = ranks_[static_cast<std::size_t>(number)];
  int status = 0;
  {
    // Its number is free afterwards: nobody may be about to send it a signal.
    const std::lock_guard lock(mutex_);
    while (::waitpid(rank.pid, &status, 0) < 0 && errno == EINTR) {
    }
    rank.gone = true;
  }
  bootstrap::RankEnd end;
  end.rank = number;
  end.host = kHost;
  end.signalled = WIFSIGNALED(status);
  end.code = end.signalled ? WTERMSIG(status) : WEXITSTATUS(status);
  agent_->rankEnded(end);
  // What it said last. Its children may hold the pipe open, so there need not be an end of it.
  if (rank.output) drain(rank);
  const std::lock_guard lock(mutex_);
  rank.pidfd.reset();
  rank.reaped = true;
  rank.result.signalled = end.signalled;
  rank.result.code = end.code;
  rank.result.ended = true;
}

void Job::kill(int number, int signal) {
  const std::lock_guard lock(mutex_);
  const Rank& rank = ranks_[static_cast<std::size_t>(number)];
  if (!rank.gone) ::kill(rank.pid, signal);
}

bool Job::waitForLine(int number, const std::string& text, std::chrono::milliseconds patience) {
  const Rank& rank = ranks_[static_cast<std::size_t>(number)];
  const auto said = [&] { return rank.result.output.find(text) != std::string::npos; };
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, patience, [&] { return said() || rank.reaped; });
  return said();
}

bool Job::waitForLineEverywhere(const std::string& text) {
  for (int rank = 0; rank < size(); ++rank) {
    if (!waitForLine(rank, text, kPatience)) return false;
  }
  return true;
}

std::vector<Job::RankResult> Job::finish(std::chrono::milliseconds patience) {
  const auto all = [&] {
    for (const auto& rank : ranks_) {
      if (!rank.reaped) return false;
    }
    return true;
  };
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, patience, all)) {
    std::vector<std::size_t> late;
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      if (ranks_[i].reaped) continue;
      late.push_back(i);
      if (!ranks_[i].gone) ::kill(-ranks_[i].pid, SIGKILL);
    }
    changed_.wait_for(lock, kPatience, all);
    for (const auto i : late) ranks_[i].result.ended = false;
  }
  std::vector<RankResult> results;
  for (const auto& rank : ranks_) results.push_back(rank.result);
  return results;
}

std::string troubleWith(const std::vector<Job::RankResult>& results) {
  std::string trouble;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto& each = results[i];
    if (each.ended && !each.signalled && each.code == 0) continue;
    trouble += "rank " + std::to_string(i) +
               (!each.ended      ? " did not end in time"
                : each.signalled ? " was killed by signal " + std::to_string(each.code)
                                 : " ended with code " + std::to_string(each.code)) +
               ":\n" + each.output + "\n";
  }
  return trouble;
}

std::string runCase(Job::Options options) { return troubleWith(Job(std::move(options)).finish()); }

}  // namespace farandole::test
