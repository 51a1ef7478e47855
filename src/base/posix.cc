#include "base/posix.h"

#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <memory>
#include <string_view>
#include <vector>

#include "base/text.h"

namespace farandole {
namespace {

bool wouldBlock(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

}  // namespace

Status fillRandom(std::span<std::uint8_t> bytes) {
  std::size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t got = ::getrandom(bytes.data() + have, bytes.size() - have, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return Status::fromErrno("no random bytes from the kernel", errno);
    have += static_cast<std::size_t>(got);
  }
  return {};
}

Result<std::string> randomHex(int bytes) {
  std::vector<std::uint8_t> random(static_cast<std::size_t>(bytes));
  FARANDOLE_RETURN_IF_ERROR(fillRandom(random));
  return hexOf(random);
}

std::string hostName() {
  char name[256] = {};
  if (::gethostname(name, sizeof(name) - 1) != 0 || name[0] == '\0') return "localhost";
  return name;
}

int pollMilliseconds(Deadline deadline, Duration limit) {
  return static_cast<int>(
      std::chrono::ceil<std::chrono::milliseconds>(deadline.left(limit)).count());
}

bool waitReady(int fd, short events, Deadline deadline) {
  for (;;) {
    pollfd entry{fd, events, 0};
    const int ready = ::poll(&entry, 1, pollMilliseconds(deadline, std::chrono::seconds(1)));
    // A poll that cannot work counts as ready: the call that follows finds out why.
    if (ready > 0 || (ready < 0 && errno != EINTR)) return true;
    if (deadline.passed()) return false;
  }
}

Status sendExactly(int fd, std::span<const std::uint8_t> bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(sent));
    } else if (wouldBlock(errno)) {
      if (!waitReady(fd, POLLOUT, deadline)) return Status::timeout("the other side does not read");
    } else if (errno != EINTR) {
      return Status::fromErrno("the connection is broken", errno);
    }
  }
  return {};
}

Status receiveExactly(int fd, std::span<std::uint8_t> bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const ssize_t got = ::recv(fd, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(got));
    } else if (got == 0) {
      return Status::unavailable("the other side closed the connection");
    } else if (wouldBlock(errno)) {
      if (!waitReady(fd, POLLIN, deadline)) return Status::timeout("the other side says nothing");
    } else if (errno != EINTR) {
      return Status::fromErrno("the connection is broken", errno);
    }
  }
  return {};
}

Result<UniqueFd> openPidfd(pid_t pid) {
  // Called by its number, because glibc has a wrapper only since 2.36. A pidfd is always
  // close-on-exec.
  UniqueFd fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!fd) {
    return Status::fromErrno("cannot open a pidfd of process " + std::to_string(pid), errno);
  }
  return fd;
}

Result<pid_t> pidOfPidfd(int fd) {
  const std::string path = "/proc/self/fdinfo/" + std::to_string(fd);
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "re"),
                                                             &std::fclose);
  if (!file) return Status::fromErrno("cannot read " + path, errno);
  char line[256];
  while (std::fgets(line, sizeof line, file.get()) != nullptr) {
    constexpr std::string_view label = "Pid:";
    std::string_view text(line);
    if (!text.starts_with(label)) continue;
    text.remove_prefix(label.size());
    text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
    pid_t pid = 0;
    if (std::from_chars(text.data(), text.data() + text.size(), pid).ec == std::errc()) return pid;
  }
  return Status::invalid("a descriptor that is not one of a process");
}

bool processEnded(int pidfd) {
  if (pidfd < 0) return false;
  pollfd entry{pidfd, POLLIN, 0};
  return ::poll(&entry, 1, 0) > 0 && (entry.revents & POLLIN) != 0;
}

}  // namespace farandole
