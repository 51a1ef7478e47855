#include "launch/process_table.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <memory>
#include <optional>
#include <unordered_set>

#include "base/fd.h"

namespace farandole {
namespace {

// Larger than any argument and environment area the kernel accepts by default (6 MiB).
constexpr std::size_t kMostBytes = 8 << 20;

std::string readFile(const std::string& path) {
  std::string text;
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return text;
  char buffer[16384];
  while (text.size() < kMostBytes) {
    const ssize_t n = ::read(fd.get(), buffer, sizeof(buffer));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    text.append(buffer, static_cast<std::size_t>(n));
  }
  return text;
}

std::string procPath(pid_t pid, const char* file) {
  return "/proc/" + std::to_string(pid) + "/" + file;
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
  const std::string text = readFile(procPath(pid, "stat"));
  const auto close = text.rfind(')');
  if (close == std::string::npos || close + 5 > text.size()) return std::nullopt;
  Stat stat{text[close + 2], 0};
  const char* begin = text.data() + close + 4;
  const auto [end, error] = std::from_chars(begin, text.data() + text.size(), stat.parent);
  if (error != std::errc()) return std::nullopt;
  return stat;
}

bool lives(const Stat& stat) { return stat.state != 'Z' && stat.state != 'X'; }

bool hasEntry(const std::string& environment, const std::string& entry) {
  for (auto at = environment.find(entry); at != std::string::npos;
       at = environment.find(entry, at + 1)) {
    const auto end = at + entry.size();
    const bool begins = at == 0 || environment[at - 1] == '\0';
    if (begins && (end == environment.size() || environment[end] == '\0')) return true;
  }
  return false;
}

}  // namespace

std::vector<pid_t> processesOfJob(std::string_view job) {
  const std::string entry = "FARANDOLE_JOB=" + std::string(job);
  const pid_t self = ::getpid();
  std::vector<pid_t> found;
  for (const pid_t pid : allProcesses()) {
    if (pid == self || !hasEntry(readFile(procPath(pid, "environ")), entry)) continue;
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

std::string processName(pid_t pid) {
  std::string name = readFile(procPath(pid, "comm"));
  if (!name.empty() && name.back() == '\n') name.pop_back();
  return name;
}

}  // namespace farandole
