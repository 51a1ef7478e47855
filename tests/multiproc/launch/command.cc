#include "multiproc/launch/command.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "paths.h"

extern char** environ;

namespace farandole::test {
namespace {

using std::chrono::milliseconds;

// Identity of a surrounding job, or settings of the person who runs the tests, must not leak in.
bool leaks(const std::string& entry) {
  for (const char* name : {"OMP_NUM_THREADS=", "NO_COLOR=", "TERM=", "FARANDOLE_"}) {
    if (entry.starts_with(name)) return true;
  }
  return false;
}

void makePipe(UniqueFd& read, UniqueFd& write) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  read.reset(ends[0]);
  write.reset(ends[1]);
}

}  // namespace

Command::Command(const std::vector<std::string>& words, const Options& options)
    : patience_(options.patience), input_(options.input) {
  std::vector<std::string> environment = options.env;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (!leaks(*entry)) environment.emplace_back(*entry);
  }
  const std::string program = options.program.empty() ? test::paths::kCommand : options.program;
  std::vector<char*> argv{const_cast<char*>(program.c_str())};
  for (const auto& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  std::vector<char*> envp;
  for (const auto& entry : environment) envp.push_back(const_cast<char*>(entry.c_str()));
  envp.push_back(nullptr);

  // A command that does not read its input must not end the tests.
  ::signal(SIGPIPE, SIG_IGN);
  UniqueFd childIn;
  UniqueFd childOut;
  UniqueFd childErr;
  int terminal = -1;
  if (options.terminal) {
    pid_ = ::forkpty(&terminal, nullptr, nullptr, nullptr);
    if (pid_ > 0) out_.reset(terminal);
  } else {
    makePipe(childIn, in_);
    makePipe(out_, childOut);
    makePipe(err_, childErr);
    ::fcntl(in_.get(), F_SETFL, O_NONBLOCK);
    pid_ = ::fork();
  }
  if (pid_ == 0) {
    ::signal(SIGPIPE, SIG_DFL);
    if (!options.terminal) {
      ::dup2(childIn.get(), 0);
      ::dup2(childOut.get(), 1);
      ::dup2(childErr.get(), 2);
    }
    if (!options.folder.empty() && ::chdir(options.folder.c_str()) != 0) ::_exit(99);
    ::execve(argv[0], argv.data(), envp.data());
    ::_exit(99);
  }
  EXPECT_GT(pid_, 0);
  if (input_.empty()) in_.reset();
}

Command::~Command() {
  if (pid_ <= 0 || ended_) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void Command::signal(int number) const { ::kill(pid_, number); }

void Command::type(const std::string& text) const {
  EXPECT_EQ(::write(out_.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
}

void Command::pump(milliseconds limit) {
  pollfd items[] = {{out_.get(), POLLIN, 0}, {err_.get(), POLLIN, 0}, {in_.get(), POLLOUT, 0}};
  if (::poll(items, 3, static_cast<int>(limit.count())) <= 0) return;
  const auto take = [](const pollfd& item, UniqueFd& fd, std::string& text) {
    if (!fd || item.revents == 0) return;
    char buffer[65536];
    const ssize_t n = ::read(fd.get(), buffer, sizeof(buffer));
    if (n > 0) text.append(buffer, static_cast<std::size_t>(n));
    if (n == 0 || (n < 0 && errno != EINTR)) fd.reset();
  };
  take(items[0], out_, outcome_.out);
  take(items[1], err_, outcome_.err);
  if (in_ && items[2].revents != 0) {
    const ssize_t n = ::write(in_.get(), input_.data(), input_.size());
    if (n > 0) input_.erase(0, static_cast<std::size_t>(n));
    if (input_.empty() || (n < 0 && errno != EAGAIN)) in_.reset();
  }
}

bool Command::reap() {
  if (ended_) return true;
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) != pid_) return false;
  ended_ = true;
  if (WIFEXITED(status)) outcome_.code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) outcome_.signal = WTERMSIG(status);
  return true;
}

bool Command::waitForOutput(const std::string& text, int count) {
  const auto end = std::chrono::steady_clock::now() + patience_;
  while (countOf(outcome_.out, text) + countOf(outcome_.err, text) < count) {
    if (std::chrono::steady_clock::now() >= end || (!out_ && !err_)) return false;
    pump(milliseconds(50));
  }
  return true;
}

Outcome Command::finish() {
  const auto end = std::chrono::steady_clock::now() + patience_;
  bool killed = false;
  while (!(reap() && !out_ && !err_)) {
    if (std::chrono::steady_clock::now() >= end + (killed ? patience_ : milliseconds(0))) {
      outcome_.timedOut = true;
      if (killed) break;
      killed = true;
      if (!ended_) ::kill(pid_, SIGKILL);
    }
    pump(milliseconds(20));
  }
  return outcome_;
}

Outcome runProgram(const std::string& program, const std::vector<std::string>& words) {
  Command::Options options;
  options.program = program;
  return Command(words, options).finish();
}

Outcome runCommand(const std::vector<std::string>& words) { return Command(words).finish(); }

std::vector<std::string> shellJob(int ranks, const std::string& script,
                                  const std::vector<std::string>& options) {
  std::vector<std::string> words{"run", "-np", std::to_string(ranks)};
  words.insert(words.end(), options.begin(), options.end());
  words.insert(words.end(), {"sh", "-c", script});
  return words;
}

int countOf(const std::string& text, const std::string& part) {
  int count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) {
    ++count;
  }
  return count;
}

std::vector<std::string> linesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::vector<pid_t> pidsIn(const std::string& text) {
  std::vector<pid_t> pids;
  for (auto at = text.find("pid "); at != std::string::npos; at = text.find("pid ", at + 4)) {
    pids.push_back(std::atoi(text.c_str() + at + 4));
  }
  return pids;
}

char processState(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  const auto close = text.rfind(')');
  return close == std::string::npos || close + 2 >= text.size() ? '-' : text[close + 2];
}

pid_t guardianOf(pid_t pid) {
  const std::string own = std::to_string(pid);
  std::ifstream children("/proc/" + own + "/task/" + own + "/children");
  for (pid_t child = 0; children >> child;) {
    std::string name;
    std::ifstream("/proc/" + std::to_string(child) + "/comm") >> name;
    if (name == "farandole-guard" && !isGone(child)) return child;
  }
  return -1;
}

bool isGone(pid_t pid) {
  const char state = processState(pid);
  return state == '-' || state == 'Z' || state == 'X';
}

void pause(milliseconds time) { std::this_thread::sleep_for(time); }

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "farandole-XXXXXX").string();
  EXPECT_NE(::mkdtemp(name.data()), nullptr);
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void TemporaryFolder::write(const std::string& name, const std::string& text,
                            bool executable) const {
  const std::string path = path_ + "/" + name;
  std::ofstream(path) << text;
  if (executable) ::chmod(path.c_str(), 0755);
}

std::string TemporaryFolder::read(const std::string& name) const {
  std::ifstream file(path_ + "/" + name);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace farandole::test
