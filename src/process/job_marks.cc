#include "process/job_marks.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "base/posix.h"
#include "process/own_cgroups.h"
#include "process/process_table.h"

extern char** environ;

namespace farandole::process {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kVariable = "FARANDOLE_JOB=";
// Below this there is no room for numbers that no other program uses.
constexpr rlim_t kLeastRoom = rlim_t{1} << 40;
// Above this some programs take it for a negative number.
constexpr rlim_t kMostRoom = rlim_t{1} << 62;

std::uint64_t hashOf(std::string_view text) {
  std::uint64_t hash = 14695981039346656037ULL;  // FNV-1a
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return hash;
}

// Less than our own limit, which may be the mark of an outer job: a process cannot raise it again.
rlim_t lockLimitFor(std::string_view job) {
  rlimit own{};
  if (::getrlimit(RLIMIT_LOCKS, &own) != 0) return 0;
  const rlim_t room = std::min(own.rlim_max, kMostRoom);
  return room < kLeastRoom ? 0 : room / 2 + hashOf(job) % (room / 4);
}

bool hasLockLimit(std::string_view limits, rlim_t limit) {
  constexpr std::string_view kName = "Max file locks";
  const auto at = limits.find(kName);
  if (at == std::string_view::npos) return false;
  limits.remove_prefix(at + kName.size());
  limits.remove_prefix(std::min(limits.find_first_not_of(' '), limits.size()));
  rlim_t found = 0;
  const auto [end, error] = std::from_chars(limits.data(), limits.data() + limits.size(), found);
  return error == std::errc() && found == limit;
}

// Whether `part` stands in `text` with nothing or one of `ends` on both sides.
bool hasPart(std::string_view text, std::string_view part, std::string_view ends) {
  const auto isEnd = [&](std::size_t at) {
    return at >= text.size() || ends.find(text[at]) != std::string_view::npos;
  };
  for (auto at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) {
    if ((at == 0 || isEnd(at - 1)) && isEnd(at + part.size())) return true;
  }
  return false;
}

// Which kind of group is best. Of version 1, systemd's named hierarchy has no limits that a new
// group could change, and that of process numbers only adds up.
constexpr std::string_view kControllers[] = {"", "name=systemd", "pids"};

// Groups can only be removed from the innermost outwards; their files go with them.
void removeGroups(const fs::path& folder, int depth) {
  std::error_code error;
  if (depth > 64) return;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    if (entry->is_directory(ignored) && !entry->is_symlink(ignored)) {
      removeGroups(entry->path(), depth + 1);
    }
  }
  ::rmdir(folder.c_str());
}

}  // namespace

JobMarks JobMarks::create(const std::string& job) {
  JobMarks marks;
  marks.variable_ = std::string(kVariable) + job;
  marks.lockLimit_ = lockLimitFor(job);
  // Machines that share their groups (containers) may have a part of the same job each.
  auto own = randomHex(4);
  marks.groupName_ = "farandole-" + job + (own.ok() ? "-" + *own : "");
  const auto groups = ownCgroups();
  for (const std::string_view controller : kControllers) {
    for (const OwnCgroup& group : groups) {
      const bool suits = group.controller == controller;
      if (suits && marks.createGroupBelow(group.folder(), controller.empty())) return marks;
    }
  }
  return marks;
}

bool JobMarks::createGroupBelow(const std::string& folder, bool second) {
  // A folder of another file system could be created as well, and would be no group.
  const std::string members = folder + (second ? "/cgroup.procs" : "/tasks");
  if (::access(members.c_str(), W_OK) != 0) return false;
  const std::string path = folder + "/" + groupName_;
  if (::mkdir(path.c_str(), 0755) != 0) return false;
  groupFolder_.reset(second ? ::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC) : -1);
  groupTasks_.reset(second ? -1 : ::open((path + "/tasks").c_str(), O_WRONLY | O_CLOEXEC));
  if (groupFolder_ || groupTasks_) {
    groupPath_ = path;
    return true;
  }
  ::rmdir(path.c_str());
  return false;
}

bool JobMarks::on(pid_t pid) const {
  if (lockLimit_ != 0 && hasLockLimit(readProcFile(procPath(pid, "limits")), lockLimit_)) {
    return true;
  }
  if (!groupPath_.empty() && hasPart(readProcFile(procPath(pid, "cgroup")), groupName_, "/\n")) {
    return true;
  }
  return hasPart(readProcFile(procPath(pid, "environ")), variable_, std::string_view("\0", 1));
}

void JobMarks::killGroup() const {
  if (groupPath_.empty()) return;
  const UniqueFd kill(::open((groupPath_ + "/cgroup.kill").c_str(), O_WRONLY | O_CLOEXEC));
  // Kernels before 5.14 and version 1 have no such file: its members are found one by one.
  if (kill) [[maybe_unused]]
    const ssize_t n = ::write(kill.get(), "1", 1);
}

bool JobMarks::removeGroup() const {
  if (groupPath_.empty() || ::rmdir(groupPath_.c_str()) == 0 || errno == ENOENT) return true;
  removeGroups(groupPath_, 0);  // a job inside this job has left its own
  return ::access(groupPath_.c_str(), F_OK) != 0;
}

void JobMarks::disown() {
  // /proc shows this very memory.
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    if (std::strncmp(*entry, kVariable.data(), kVariable.size()) == 0) {
      std::memset(*entry, '_', kVariable.size() - 1);
    }
  }
  rlimit own{};
  if (::getrlimit(RLIMIT_LOCKS, &own) != 0 || own.rlim_max == RLIM_INFINITY) return;
  own.rlim_max -= own.rlim_max > 0 ? 1 : 0;
  own.rlim_cur = own.rlim_max;
  ::setrlimit(RLIMIT_LOCKS, &own);
}

}  // namespace farandole::process
