#include "bootstrap/unix_socket.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <thread>

namespace farandole::bootstrap {
namespace {

constexpr int kBacklog = 512;
constexpr std::size_t kMaxName = sizeof(sockaddr_un::sun_path) - 1;  // less the leading NUL

// The abstract namespace: a leading NUL, and the length counts instead of a terminator.
socklen_t fillAddress(sockaddr_un& address, const std::string& name) {
  std::memset(&address, 0, sizeof address);
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
}

Result<UniqueFd> makeSocket(int type) {
  UniqueFd fd(::socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return Status::fromErrno("cannot make a unix socket", errno);
  return fd;
}

bool wouldBlock(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

}  // namespace

Result<std::string> randomSocketName() {
  FARANDOLE_ASSIGN_OR_RETURN(auto hex, randomHex(16));
  return "farandole-" + hex;
}

Result<std::string> parseAbstractAddress(std::string_view address) {
  if (address.size() < 2 || address.front() != '@' || address.size() - 1 > kMaxName) {
    return Status::invalid("\"" + std::string(address.substr(0, 120)) +
                           "\" is not the address of an agent (\"@\" and a name are expected)");
  }
  for (const char c : address.substr(1)) {
    if (c <= ' ' || c > '~') return Status::invalid("an agent's address has plain characters only");
  }
  return std::string(address.substr(1));
}

Result<UniqueFd> listenAbstract(const std::string& name, int type) {
  if (name.empty() || name.size() > kMaxName) return Status::invalid("a bad socket name");
  Result<UniqueFd> made = makeSocket(type);
  if (!made.ok()) return made;
  sockaddr_un address;
  const socklen_t length = fillAddress(address, name);
  if (::bind(made->get(), reinterpret_cast<const sockaddr*>(&address), length) != 0) {
    return Status::fromErrno("cannot bind a unix socket", errno);
  }
  if (::listen(made->get(), kBacklog) != 0) {
    return Status::fromErrno("cannot listen on a unix socket", errno);
  }
  return made;
}

Result<UniqueFd> connectAbstract(const std::string& name, int type, Deadline deadline) {
  if (name.empty() || name.size() > kMaxName) return Status::invalid("a bad socket name");
  Result<UniqueFd> made = makeSocket(type);
  if (!made.ok()) return made;
  sockaddr_un address;
  const socklen_t length = fillAddress(address, name);
  for (;;) {
    if (::connect(made->get(), reinterpret_cast<const sockaddr*>(&address), length) == 0) {
      return made;
    }
    if (errno == EINTR) continue;
    // The queue of the listener is full: there is nothing to poll for, so it is tried again.
    if (!wouldBlock(errno)) return Status::fromErrno("cannot connect to a unix socket", errno);
    if (deadline.passed()) return Status::timeout("nobody accepted the connection in time");
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

Result<Peer> sameUserPeer(int fd) {
  ucred credentials{};
  socklen_t length = sizeof credentials;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) {
    return Status::fromErrno("the other side's user is not known", errno);
  }
  if (credentials.uid != ::geteuid()) {
    return Status::unavailable("the process at the other end belongs to user " +
                               std::to_string(credentials.uid) + ", not to user " +
                               std::to_string(::geteuid()));
  }
  return Peer{credentials.pid};
}

}  // namespace farandole::bootstrap
