#include "launch/doctor/tcp_probe.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "bootstrap/unix_socket.h"
#include "launch/doctor/within.h"

namespace farandole {
namespace {

struct Address {
  int family = 0;
  sockaddr_storage storage{};
  socklen_t size = 0;
  std::string text;
};

struct Lookup {
  int error = 0;
  std::vector<Address> addresses;
};

Lookup lookUp(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* list = nullptr;
  Lookup result;
  result.error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (result.error != 0) return result;
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, ::freeaddrinfo);
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    Address address;
    address.family = entry->ai_family;
    address.size = entry->ai_addrlen;
    std::memcpy(&address.storage, entry->ai_addr, entry->ai_addrlen);
    char text[NI_MAXHOST] = {};
    ::getnameinfo(entry->ai_addr, entry->ai_addrlen, text, sizeof(text), nullptr, 0,
                  NI_NUMERICHOST);
    address.text = text;
    result.addresses.push_back(address);
  }
  return result;
}

TcpState stateOf(int error) {
  if (error == ECONNREFUSED) return TcpState::kRefused;
  return error == ETIMEDOUT ? TcpState::kFiltered : TcpState::kUnreachable;
}

TcpProbe tryOne(const Address& address, Deadline deadline) {
  TcpProbe probe;
  probe.address = address.text;
  const TimePoint begin = Clock::now();
  UniqueFd fd(::socket(address.family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  int error = 0;
  if (!fd) {
    error = errno;
  } else if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address.storage),
                       address.size) != 0) {
    error = errno;
    if (error == EINPROGRESS) {
      if (!waitReady(fd.get(), POLLOUT, deadline)) {
        probe.evidence = "no answer to connect";
        probe.took = Clock::now() - begin;
        return probe;
      }
      socklen_t size = sizeof(error);
      ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    }
  }
  probe.took = Clock::now() - begin;
  if (error != 0) {
    probe.state = stateOf(error);
    probe.evidence = std::string("connect: ") + std::strerror(error);
    return probe;
  }
  probe.state = TcpState::kOpen;
  probe.fd = std::move(fd);
  return probe;
}

}  // namespace

const char* tcpStateName(TcpState state) {
  switch (state) {
    case TcpState::kOpen: return "open";
    case TcpState::kRefused: return "refused";
    case TcpState::kFiltered: return "filtered";
    case TcpState::kUnreachable: return "unreachable";
    case TcpState::kNameUnknown: return "name unknown";
    case TcpState::kNameTimeout: return "name server silent";
  }
  return "";
}

TcpProbe probeTcp(const std::string& host, int port, Deadline deadline) {
  TcpProbe probe;
  // The resolver has no deadline of its own.
  Background<Lookup> resolver([host, port] { return lookUp(host, port); });
  const auto found = resolver.wait(deadline);
  if (!found || found->error == EAI_AGAIN) {
    probe.state = TcpState::kNameTimeout;
    probe.evidence = found ? ::gai_strerror(found->error) : "no answer from the resolver";
    return probe;
  }
  if (found->error != 0) {
    probe.state = TcpState::kNameUnknown;
    probe.evidence = ::gai_strerror(found->error);
    return probe;
  }
  auto left = static_cast<long>(found->addresses.size());
  for (const Address& address : found->addresses) {
    const Duration share = deadline.left(std::chrono::hours(1)) / left--;
    TcpProbe next = tryOne(address, Deadline::after(share));
    if (next.state == TcpState::kOpen) return next;
    // A refusal tells more than silence or a missing route of another family.
    if (probe.address.empty() || next.state == TcpState::kRefused ||
        (probe.state == TcpState::kUnreachable && next.state == TcpState::kFiltered)) {
      probe = std::move(next);
    }
  }
  return probe;
}

}  // namespace farandole
