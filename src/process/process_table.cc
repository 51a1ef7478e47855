#include "process/process_table.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_set>

#include "base/fd.h"

namespace farandole::process {
namespace {

// Larger than any argument and environment area the kernel accepts by default (6 MiB).
constexpr std::size_t kMostBytes = 8 << 20;

std::string readAll(int fd) {
  std::string text;
  char buffer[16384];
  while (text.size() < kMostBytes) {
    const ssize_t n = ::read(fd, buffer, sizeof(buffer));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    text.append(buffer, static_cast<std::size_t>(n));
  }
  return text;
}

std::vector<pid_t> allProcesses() {
  std::vector<pid_t> pids;
  std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc"), ::closedir);
  if (!folder) return pids;
  while (const dirent* entry = ::readdir(folder.get())) {
    const std::string_view name(entry->d_name);
    pid_t pid = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error == std::errc() && end == name.data() + name.size() && pid > 0) pids.push_back(pid);
  }
  return pids;
}

struct Stat {
  char state;
  pid_t parent;
};

// The name, in parentheses, may itself hold spaces and parentheses.
std::optional<Stat> readStat(pid_t pid) {
  const std::string text = readProcFile(procPath(pid, "stat"));
  const auto close = text.rfind(')');
  if (close == std::string::npos || close + 5 > text.size()) return std::nullopt;
  Stat stat{text[close + 2], 0};
  const char* begin = text.data() + close + 4;
  const auto [end, error] = std::from_chars(begin, text.data() + text.size(), stat.parent);
  if (error != std::errc()) return std::nullopt;
  return stat;
}

bool lives(const Stat& stat) { return stat.state != 'Z' && stat.state != 'X'; }

// The children of all threads; nothing where the kernel does not list them.
std::optional<std::vector<pid_t>> listedChildren() {
  std::vector<pid_t> pids;
  std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc/self/task"), ::closedir);
  if (!folder) return std::nullopt;
  while (const dirent* entry = ::readdir(folder.get())) {
    if (entry->d_name[0] == '.') continue;
    const std::string path = std::string("/proc/self/task/") + entry->d_name + "/children";
    UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd && errno == ENOENT && std::to_string(::getpid()) == entry->d_name) return std::nullopt;
    const std::string text = fd ? readAll(fd.get()) : "";
    for (const char *at = text.data(), *end = at + text.size(); at < end; ++at) {
      pid_t pid = 0;
      const auto [next, error] = std::from_chars(at, end, pid);
      if (error == std::errc()) pids.push_back(pid);
      at = next;
    }
  }
  return pids;
}

}  // namespace

std::string readProcFile(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return fd ? readAll(fd.get()) : "";
}

std::string procPath(pid_t pid, const char* file) {
  return "/proc/" + std::to_string(pid) + "/" + file;
}

std::vector<pid_t> processesThat(const std::function<bool(pid_t)>& is) {
  const pid_t self = ::getpid();
  std::vector<pid_t> found;
  for (const pid_t pid : allProcesses()) {
    if (pid == self || !is(pid)) continue;
    const auto stat = readStat(pid);
    if (stat && lives(*stat)) found.push_back(pid);
  }
  return found;
}

std::vector<pid_t> descendantsOf(pid_t ancestor) {
  std::vector<std::pair<pid_t, Stat>> all;
  for (const pid_t pid : allProcesses()) {
    if (const auto stat = readStat(pid)) all.emplace_back(pid, *stat);
  }
  std::vector<pid_t> found;
  std::unordered_set<pid_t> family{ancestor};
  // Parents need not come before children in /proc once pids have wrapped around.
  for (bool grew = true; grew;) {
    grew = false;
    for (const auto& [pid, stat] : all) {
      if (!family.contains(stat.parent) || !family.insert(pid).second) continue;
      grew = true;
      if (lives(stat)) found.push_back(pid);
    }
  }
  return found;
}

bool descendsFrom(pid_t pid, pid_t ancestor) {
  constexpr int kMostGenerations = 1000;
  for (int i = 0; i < kMostGenerations && pid > 0; ++i) {
    const auto stat = readStat(pid);
    if (!stat) return false;
    if (stat->parent == ancestor) return true;
    pid = stat->parent;
  }
  return false;
}

std::vector<pid_t> ownChildren() {
  if (const auto listed = listedChildren()) return *listed;
  const pid_t self = ::getpid();
  std::vector<pid_t> found;
  for (const pid_t pid : allProcesses()) {
    const auto stat = readStat(pid);
    if (stat && stat->parent == self) found.push_back(pid);
  }
  return found;
}

bool signalProcess(pid_t pid, int signal, const std::function<bool(pid_t)>& is) {
  // While the process of this descriptor lives, no other process has its number. If the number now
  // belongs to another process, that of the descriptor has ended, and no process gets the signal.
  const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!process && errno == ESRCH) return false;
  if (!is(pid)) return false;
  if (!process) return ::kill(pid, signal) == 0;  // a kernel without them, or no descriptor left
  return ::syscall(SYS_pidfd_send_signal, process.get(), signal, nullptr, 0) == 0;
}

std::string processName(pid_t pid) {
  std::string name = readProcFile(procPath(pid, "comm"));
  if (!name.empty() && name.back() == '\n') name.pop_back();
  return name;
}

}  // namespace farandole::process
