// Opening the port of a rank, and which addresses lead to it.
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "transport/link_listener.h"

namespace farandole::transport {
namespace {

// An unbound socket of the right family; for "all addresses" one that takes IPv4 as well.
Result<UniqueFd> makeSocket(LinkAddress& address, bool everything) {
  UniqueFd fd(
      ::socket(address.v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd && everything && errno == EAFNOSUPPORT) {
    address.v6 = false;  // a machine without IPv6
    fd.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  }
  if (!fd) return Status::fromErrno("cannot make a socket", errno);
  const int on = 1;
  const int off = 0;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (address.v6) {
    ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, everything ? &off : &on, sizeof off);
  }
  return fd;
}

std::uint16_t portOf(int fd) {
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &length);
  const Result<LinkAddress> bound =
      LinkAddress::fromSockaddr(reinterpret_cast<const sockaddr*>(&storage));
  return bound.ok() ? bound.value().port : 0;
}

std::string where(const LinkPorts& ports) { return ports.bind.empty() ? "" : " of " + ports.bind; }

}  // namespace

Result<LinkSocket> openLinkPort(const LinkPorts& ports) {
  if (ports.low > ports.high || (ports.low == 0 && ports.high != 0)) {
    return Status::invalid("the port range " + std::to_string(ports.low) + "-" +
                           std::to_string(ports.high) +
                           " is empty: give the smaller port first, e.g. 20000-20031");
  }
  LinkAddress address;
  const bool everything = ports.bind.empty();
  address.v6 = everything;
  if (!everything) {
    FARANDOLE_ASSIGN_OR_RETURN(address, LinkAddress::parse(ports.bind));
  }
  int error = 0;
  for (std::uint32_t port = ports.low; port <= ports.high; ++port) {
    FARANDOLE_ASSIGN_OR_RETURN(auto fd, makeSocket(address, everything));
    address.port = static_cast<std::uint16_t>(port);
    sockaddr_storage storage{};
    const socklen_t length = address.toSockaddr(storage);
    // Two ranks may both bind before either listens; only one of them can listen.
    if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&storage), length) == 0 &&
        ::listen(fd.get(), 1) == 0) {
      const std::uint16_t bound = portOf(fd.get());
      return LinkSocket{std::move(fd), bound};
    }
    error = errno;
    if (error != EADDRINUSE && error != EACCES) break;
  }
  if (error == EADDRINUSE && ports.low != 0) {
    return Status::unavailable("every port from " + std::to_string(ports.low) + " to " +
                               std::to_string(ports.high) + where(ports) +
                               " is in use: give a wider range, at least one port for each rank "
                               "of a machine");
  }
  return Status::fromErrno("cannot listen on port " + std::to_string(address.port) + where(ports),
                           error);
}

Result<std::vector<LinkAddress>> advertisedAddresses(const LinkPorts& ports, std::uint16_t port,
                                                     const std::vector<std::string>& advertise,
                                                     const std::vector<std::string>& interfaces) {
  std::vector<LinkAddress> told;
  for (const std::string& text : advertise) {
    FARANDOLE_ASSIGN_OR_RETURN(auto address, LinkAddress::parse(text));
    told.push_back(address);
  }
  if (told.empty() && !ports.bind.empty()) {
    FARANDOLE_ASSIGN_OR_RETURN(auto address, LinkAddress::parse(ports.bind));
    if (!address.isAny()) told.push_back(address);
  }
  if (told.empty()) {
    FARANDOLE_ASSIGN_OR_RETURN(auto found, interfaceAddresses());
    told = usefulAddresses(found, interfaces);
  }
  if (told.empty()) {
    return Status::unavailable(
        interfaces.empty() ? "this machine has no network address that is up"
                           : "none of the network interfaces that were named has an address here");
  }
  for (LinkAddress& address : told) {
    if (address.port == 0) address.port = port;
  }
  return told;
}

}  // namespace farandole::transport
