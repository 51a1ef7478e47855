#include "unit/bootstrap/children.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <utility>

#include "bootstrap/unix_socket.h"

namespace farandole::test {
namespace {

std::pair<UniqueFd, UniqueFd> makePipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

std::string readAll(int fd, Deadline deadline) {
  std::string text;
  char bytes[4096];
  while (waitReady(fd, POLLIN, deadline)) {
    const ssize_t got = ::read(fd, bytes, sizeof bytes);
    if (got <= 0) break;
    text.append(bytes, static_cast<std::size_t>(got));
  }
  return text;
}

}  // namespace

Children::Children(int count, const Work& work) {
  for (int index = 0; index < count; ++index) {
    auto [startRead, startWrite] = makePipe();
    auto [resultRead, resultWrite] = makePipe();
    const pid_t pid = ::fork();
    if (pid < 0) std::abort();
    if (pid == 0) {
      children_.clear();
      startWrite.reset();
      resultRead.reset();
      const std::string address =
          readAll(startRead.get(), Deadline::after(std::chrono::seconds(100)));
      const std::string said = address.empty() ? "was never told to go" : work(index, address);
      [[maybe_unused]] const ssize_t written = ::write(resultWrite.get(), said.data(), said.size());
      ::_exit(said.empty() ? 0 : 1);
    }
    children_.push_back({pid, std::move(startWrite), std::move(resultRead)});
  }
}

Children::~Children() {
  for (Child& child : children_) {
    if (child.pid <= 0) continue;
    ::kill(child.pid, SIGKILL);
    ::waitpid(child.pid, nullptr, 0);
  }
}

void Children::go(const std::string& address) {
  for (Child& child : children_) {
    [[maybe_unused]] const ssize_t written =
        ::write(child.start.get(), address.data(), address.size());
    child.start.reset();
  }
}

void Children::kill(int index, int signal) { ::kill(pid(index), signal); }

std::vector<std::string> Children::results(Duration limit) {
  const Deadline deadline = Deadline::after(limit);
  std::vector<std::string> results;
  for (Child& child : children_) {
    std::string said = readAll(child.result.get(), deadline);
    if (deadline.passed()) ::kill(child.pid, SIGKILL);
    int status = 0;
    ::waitpid(child.pid, &status, 0);
    child.pid = -1;
    if (WIFSIGNALED(status)) said += " killed by signal " + std::to_string(WTERMSIG(status));
    if (WIFEXITED(status) && WEXITSTATUS(status) != 0 && said.empty()) {
      said = "exited with code " + std::to_string(WEXITSTATUS(status));
    }
    results.push_back(std::move(said));
  }
  return results;
}

std::string failures(const std::vector<std::string>& results) {
  std::string text;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!results[i].empty()) text += "child " + std::to_string(i) + ": " + results[i] + "\n";
  }
  return text;
}

int openDescriptors() {
  int count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    ++count;
  }
  return count;
}

}  // namespace farandole::test
