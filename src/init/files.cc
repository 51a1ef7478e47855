#include "init/files.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "base/fd.h"

namespace farandole::init {
namespace {

constexpr std::size_t kMostContent = 1 << 20;

Status own(int fd, const std::string& path, const Placement& place) {
  if (place.owner && ::geteuid() == 0 && ::fchown(fd, place.owner->uid, place.owner->gid) != 0) {
    return Status::fromErrno("cannot give " + path + " to user " + std::to_string(place.owner->uid),
                             errno);
  }
  // After fchown, which clears some bits.
  if (::fchmod(fd, place.mode) != 0)
    return Status::fromErrno("cannot set the mode of " + path, errno);
  return {};
}

Status writeAll(int fd, const std::string& path, const std::string& content) {
  std::size_t done = 0;
  while (done < content.size()) {
    const ssize_t got = ::write(fd, content.data() + done, content.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Status::fromErrno("cannot write " + path, errno);
    done += static_cast<std::size_t>(got);
  }
  if (::fsync(fd) != 0 && errno != EINVAL) return Status::fromErrno("cannot write " + path, errno);
  return {};
}

}  // namespace

Result<std::optional<std::string>> readFile(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd && (errno == ENOENT || errno == ENOTDIR)) return std::optional<std::string>();
  if (!fd && errno == EACCES) {
    return Status::unavailable("cannot read " + path +
                               ": it belongs to somebody else; type the command with sudo");
  }
  if (!fd) return Status::fromErrno("cannot read " + path, errno);
  struct stat facts {};
  if (::fstat(fd.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) {
    return Status::invalid(path + " is no ordinary file; move it away");
  }
  std::string content;
  std::array<char, 8192> buffer{};
  while (true) {
    const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Status::fromErrno("cannot read " + path, errno);
    if (got == 0) return std::optional<std::string>(std::move(content));
    content.append(buffer.data(), static_cast<std::size_t>(got));
    if (content.size() > kMostContent) return Status::invalid(path + " has more than 1 MiB");
  }
}

Status writeFile(const std::string& path, const std::string& content, const Placement& place) {
  std::string temporary = path + ".XXXXXX";
  UniqueFd fd(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!fd) return Status::fromErrno("cannot write " + path, errno);
  Status status = own(fd.get(), path, place);
  if (status.ok()) status = writeAll(fd.get(), path, content);
  if (status.ok() && ::rename(temporary.c_str(), path.c_str()) != 0) {
    status = Status::fromErrno("cannot write " + path, errno);
  }
  if (!status.ok()) ::unlink(temporary.c_str());
  return status;
}

Result<bool> makeFolder(const std::string& path, const Placement& place) {
  if (::mkdir(path.c_str(), 0700) != 0) {
    if (errno != EEXIST) return Status::fromErrno("cannot make the folder " + path, errno);
    struct stat facts {};
    if (::stat(path.c_str(), &facts) != 0) return Status::fromErrno(path, errno);
    if (!S_ISDIR(facts.st_mode)) {
      return Status::invalid(path + " exists and is no folder; move it away");
    }
    return false;
  }
  auto corrected = correct(path, place);
  if (!corrected.ok()) return corrected.status();
  return true;
}

Result<bool> correct(const std::string& path, const Placement& place) {
  // Not through a link: root must not give away what a user's link points at.
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd && errno == ELOOP) {
    return Status::invalid(path + " is a symbolic link; put the file itself there");
  }
  if (!fd) return Status::fromErrno("cannot open " + path, errno);
  struct stat facts {};
  if (::fstat(fd.get(), &facts) != 0) return Status::fromErrno(path, errno);
  const bool mode = (facts.st_mode & 07777) == place.mode;
  const bool owner = !place.owner || ::geteuid() != 0 ||
                     (facts.st_uid == place.owner->uid && facts.st_gid == place.owner->gid);
  if (mode && owner) return false;
  FARANDOLE_RETURN_IF_ERROR(own(fd.get(), path, place));
  return true;
}

Result<std::string> absoluteFolder(const std::string& path) {
  std::error_code error;
  auto absolute = std::filesystem::weakly_canonical(path, error);
  if (!error && absolute.is_relative()) absolute = std::filesystem::absolute(absolute, error);
  if (error) return Status::invalid("--dir '" + path + "': " + error.message());
  std::string text = absolute.lexically_normal().string();
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

Result<TemporaryFolder> TemporaryFolder::in(const std::string& parent) {
  std::string path = parent + "/.init.XXXXXX";
  if (::mkdtemp(path.data()) == nullptr) {
    return Status::fromErrno("cannot write in the folder " + parent, errno);
  }
  return TemporaryFolder(std::move(path));
}

TemporaryFolder::TemporaryFolder(TemporaryFolder&& other) noexcept
    : path_(std::exchange(other.path_, {})) {}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace farandole::init
