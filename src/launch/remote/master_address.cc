#include "launch/remote/master_address.h"

#include <netdb.h>
#include <sys/socket.h>

#include <sstream>

#include "base/fd.h"
#include "launch/hosts/locality.h"
#include "launch/hosts/name_lookup.h"

namespace farandole::launch::remote {
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
std::string ownAddressToward(const std::string& name, Deadline deadline) {
  constexpr int kDiscard = 9;
  const auto found = launch::hosts::lookUpName(name, kDiscard, deadline);
  if (!found) return {};
  for (const launch::hosts::NameAddress& to : found->addresses) {
    const UniqueFd fd(::socket(to.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_storage own{};
    socklen_t length = sizeof(own);
    char text[NI_MAXHOST];
    if (fd && ::connect(fd.get(), to.get(), to.size) == 0 &&
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
    if (!seen.empty() && launch::hosts::isThisMachine({seen})) return seen;
  }
  const Deadline deadline = Deadline::after(launch::hosts::kNameTime);  // for all of them together
  for (const SeenFrom& host : others) {
    if (const std::string own = ownAddressToward(host.name, deadline); !own.empty()) return own;
  }
  // Names that only ssh knows: the jump host's address may still lead here.
  return others.empty() ? std::string() : field(others.front().sshConnection, 0);
}

}  // namespace farandole::launch::remote
