#include "base/files.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/clock.h"
#include "base/fd.h"

namespace farandole {

Result<std::string> readFile(const std::string& path, std::size_t most,
                             std::chrono::milliseconds timeout) {
  const Deadline deadline = Deadline::after(timeout);
  // Non-blocking, because a pipe without a writer must not block this process.
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd) return Status::fromErrno(path, errno);
  std::string text;
  char buffer[16384];
  for (;;) {
    const ssize_t n = ::read(fd.get(), buffer, sizeof(buffer));
    if (n == 0) return text;
    if (n > 0) {
      if (text.size() + static_cast<std::size_t>(n) > most) {
        return Status::invalid(path + ": longer than " + std::to_string(most) + " bytes");
      }
      text.append(buffer, static_cast<std::size_t>(n));
      // Only a pipe can be endless, and its size is limited.
      continue;
    }
    if (errno != EAGAIN && errno != EINTR) return Status::fromErrno(path, errno);
    if (deadline.passed()) {
      return Status::timeout(path + ": its end did not come within " +
                             std::to_string(timeout.count() / 1000) + " s");
    }
    pollfd entry{fd.get(), POLLIN, 0};
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline.left(std::chrono::seconds(1)));
    ::poll(&entry, 1, static_cast<int>(left.count()));
  }
}

std::string readSmall(const std::string& path) {
  std::string text(std::size_t{64} << 10, '\0');
  std::FILE* file = std::fopen(path.c_str(), "re");
  if (file == nullptr) return {};
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  return text;
}

bool isOwnLink(const std::string& path) {
  const auto trusted = [](const struct stat& about) {
    return about.st_uid == ::geteuid() || about.st_uid == 0;
  };
  struct stat about {};
  if (::lstat(path.c_str(), &about) != 0 || !S_ISLNK(about.st_mode) || !trusted(about))
    return false;
  const auto slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  if (::stat(folder.c_str(), &about) != 0 || !trusted(about)) return false;
  return (about.st_mode & (S_IWGRP | S_IWOTH)) == 0 || (about.st_mode & S_ISVTX) != 0;
}

}  // namespace farandole
