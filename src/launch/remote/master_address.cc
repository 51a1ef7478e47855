#include "launch/remote/master_address.h"

#include <netdb.h>
#include <sys/socket.h>

#include <memory>
#include <sstream>

#include "base/fd.h"
#include "launch/hosts/locality.h"

namespace farandole::remote {
namespace {

// 0: the client's address, 2: the server's.
std::string field(const std::string& connection, int index) {
  std::istringstream words(connection);
  std::string word;
  for (int i = 0; i <= index; ++i) {
    if (!(words >> word)) return {};
  }
  return word;
}

// Asks the routing table; nothing is sent.
std::string ownAddressToward(const std::string& name) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(name.c_str(), "9", &hints, &found) != 0) return {};
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(found, &::freeaddrinfo);
  for (const addrinfo* to = found; to != nullptr; to = to->ai_next) {
    const UniqueFd fd(::socket(to->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_storage own{};
    socklen_t length = sizeof(own);
    char text[NI_MAXHOST];
    if (fd && ::connect(fd.get(), to->ai_addr, to->ai_addrlen) == 0 &&
        ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&own), &length) == 0 &&
        ::getnameinfo(reinterpret_cast<sockaddr*>(&own), length, text, sizeof(text), nullptr, 0,
                      NI_NUMERICHOST) == 0) {
      return text;
    }
  }
  return {};
}

}  // namespace

std::string addressOf(const SeenFrom& host) {
  const std::string address = field(host.sshConnection, 2);
  return address.empty() ? host.name : address;
}

std::string launcherSeenFrom(const SeenFrom& host) { return field(host.sshConnection, 0); }

std::string ownAddressFor(const std::vector<SeenFrom>& others) {
  for (const SeenFrom& host : others) {
    const std::string seen = field(host.sshConnection, 0);
    if (!seen.empty() && isThisMachine({seen})) return seen;
  }
  for (const SeenFrom& host : others) {
    if (const std::string own = ownAddressToward(host.name); !own.empty()) return own;
  }
  // Names that only ssh knows: the jump host's address may still lead here.
  return others.empty() ? std::string() : field(others.front().sshConnection, 0);
}

}  // namespace farandole::remote
