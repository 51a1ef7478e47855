#include "observe/timeline_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <thread>

#include "base/files.h"

namespace farandole::observe {
namespace {

constexpr std::string_view kOpening = "[\n";
constexpr mode_t kMode = 0644;

Status failed(const std::string& path, int error) {
  if (error == ELOOP) {
    return Status::invalid("the timeline file " + path +
                           " is a symbolic link in a folder that others may write, or somebody "
                           "else's: remove it or choose another name");
  }
  return Status::fromErrno("the timeline file " + path, error);
}

// Follows no symbolic link that somebody else may have prepared.
UniqueFd openFile(const std::string& path, int flags) {
  const int always = O_CLOEXEC | O_NOCTTY | (isOwnLink(path) ? 0 : O_NOFOLLOW);
  return UniqueFd(::open(path.c_str(), flags | always, kMode));
}

// Somebody else has created it, perhaps this very moment.
Status waitForOpening(int fd, const std::string& path, Deadline deadline) {
  for (;;) {
    struct stat info {};
    if (::fstat(fd, &info) != 0) return failed(path, errno);
    if (!S_ISREG(info.st_mode)) return Status::invalid(path + " is not an ordinary file");
    if (info.st_size >= static_cast<off_t>(kOpening.size())) return {};
    if (deadline.passed()) {
      return Status::unavailable("the timeline file " + path +
                                 " is empty and nobody begins it; remove it");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// A finished array cannot be continued.
Status checkUnfinished(int fd, const std::string& path) {
  char end[2] = {};
  struct stat info {};
  if (::fstat(fd, &info) != 0) return failed(path, errno);
  const ssize_t got = ::pread(fd, end, sizeof end, info.st_size - static_cast<off_t>(sizeof end));
  if (got < 0) return failed(path, errno);
  if (got == static_cast<ssize_t>(sizeof end) && end[0] == ']' && end[1] == '\n') {
    return Status::invalid(path + " holds a finished timeline; remove it or choose another name");
  }
  return {};
}

}  // namespace

Result<UniqueFd> openTimelineFile(const std::string& path, Deadline deadline) {
  UniqueFd fd = openFile(path, O_RDWR | O_APPEND | O_CREAT | O_EXCL);
  if (fd) {
    if (Status status = appendToTimelineFile(fd.get(), kOpening, path); !status.ok()) return status;
    return fd;
  }
  if (errno != EEXIST) return failed(path, errno);
  fd = openFile(path, O_RDWR | O_APPEND);
  if (!fd) return failed(path, errno);
  if (Status status = waitForOpening(fd.get(), path, deadline); !status.ok()) return status;
  if (Status status = checkUnfinished(fd.get(), path); !status.ok()) return status;
  return fd;
}

Status createTimelineFile(const std::string& path) {
  UniqueFd fd = openFile(path, O_RDWR | O_APPEND | O_CREAT | O_TRUNC);
  if (!fd) return failed(path, errno);
  return appendToTimelineFile(fd.get(), kOpening, path);
}

Status appendToTimelineFile(int fd, std::string_view lines, const std::string& path) {
  for (;;) {
    const ssize_t written = ::write(fd, lines.data(), lines.size());
    if (written == static_cast<ssize_t>(lines.size())) return {};
    if (written >= 0) return failed(path, ENOSPC);
    if (errno != EINTR) return failed(path, errno);
  }
}

}  // namespace farandole::observe
