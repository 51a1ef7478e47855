#include "launch/facts/tcp_probe.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "base/posix.h"
#include "launch/hosts/name_lookup.h"

namespace farandole::launch::facts {
namespace {

TcpState stateOf(int error) {
  if (error == ECONNREFUSED) return TcpState::kRefused;
  return error == ETIMEDOUT ? TcpState::kFiltered : TcpState::kUnreachable;
}

TcpProbe tryOne(const launch::hosts::NameAddress& address, Deadline deadline) {
  TcpProbe probe;
  probe.address = address.text;
  const TimePoint begin = Clock::now();
  UniqueFd fd(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  int error = 0;
  if (!fd) {
    error = errno;
  } else if (::connect(fd.get(), address.get(), address.size) != 0) {
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
  const auto found = launch::hosts::lookUpName(host, port, deadline);
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
  for (const launch::hosts::NameAddress& address : found->addresses) {
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

}  // namespace farandole::launch::facts
