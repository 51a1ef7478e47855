#include "base/fd_passing.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace farandole {
namespace {

// Room for the descriptors, aligned as the kernel wants it.
struct Control {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMostPassedFds * sizeof(int))> bytes;
};

void takeFds(msghdr& message, std::vector<UniqueFd>& fds) {
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof fd);
      fds.emplace_back(fd);
    }
  }
}

}  // namespace

ssize_t sendWithFds(int socket, std::span<const std::uint8_t> bytes, std::span<const int> fds) {
  if (fds.size() > kMostPassedFds) {
    errno = EINVAL;
    return -1;
  }
  iovec data{const_cast<std::uint8_t*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  Control control{};
  if (!fds.empty()) {
    message.msg_control = control.bytes.data();
    message.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
  }
  ssize_t sent = -1;
  do {
    sent = ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  return sent;
}

Passed receiveWithFds(int socket, std::span<std::uint8_t> bytes) {
  iovec data{bytes.data(), bytes.size()};
  Control control;
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes.data();
  message.msg_controllen = control.bytes.size();
  Passed passed;
  do {
    passed.bytes = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (passed.bytes < 0 && errno == EINTR);
  if (passed.bytes < 0) return passed;
  takeFds(message, passed.fds);
  passed.fdsLost = (message.msg_flags & MSG_CTRUNC) != 0;
  passed.cut = (message.msg_flags & MSG_TRUNC) != 0;
  return passed;
}

}  // namespace farandole
