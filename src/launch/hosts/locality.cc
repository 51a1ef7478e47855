#include "launch/hosts/locality.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <pwd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <optional>

#include "base/thread.h"
#include "launch/hosts/name_lookup.h"

namespace farandole::launch::hosts {
namespace {

constexpr std::size_t kAtOnce = 16;

bool sameAddress(const sockaddr* a, const sockaddr* b) {
  if (a == nullptr || b == nullptr || a->sa_family != b->sa_family) return false;
  if (a->sa_family == AF_INET) {
    return reinterpret_cast<const sockaddr_in*>(a)->sin_addr.s_addr ==
           reinterpret_cast<const sockaddr_in*>(b)->sin_addr.s_addr;
  }
  return a->sa_family == AF_INET6 &&
         std::memcmp(&reinterpret_cast<const sockaddr_in6*>(a)->sin6_addr,
                     &reinterpret_cast<const sockaddr_in6*>(b)->sin6_addr, sizeof(in6_addr)) == 0;
}

bool isLoopback(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    const auto bits = reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr;
    return (ntohl(bits) >> 24) == 127;
  }
  return address->sa_family == AF_INET6 &&
         IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
}

std::string ownUser() {
  const passwd* entry = ::getpwuid(::getuid());
  return entry == nullptr ? "" : entry->pw_name;
}

bool isOurs(const std::vector<NameAddress>& addresses) {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return false;
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> interfaces(list, &::freeifaddrs);
  for (const NameAddress& address : addresses) {
    if (isLoopback(address.get())) return true;
    for (const ifaddrs* own = list; own != nullptr; own = own->ifa_next) {
      if (sameAddress(address.get(), own->ifa_addr)) return true;
    }
  }
  return false;
}

}  // namespace

std::vector<bool> whichAreThisMachine(const std::vector<HostSpec>& hosts) {
  const std::string user = ownUser();
  std::vector<bool> ours(hosts.size());
  std::vector<std::size_t> unknown;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    const HostSpec& host = hosts[i];
    if (host.port != 0 || (!host.user.empty() && host.user != user)) continue;
    ours[i] = host.name == "localhost";
    if (!ours[i]) unknown.push_back(i);
  }
  std::vector<std::optional<NameAnswer>> answers(unknown.size());
  const Deadline deadline = Deadline::after(kNameTime);
  inParallel(unknown.size(), kAtOnce,
             [&](std::size_t i) { answers[i] = lookUpName(hosts[unknown[i]].name, 0, deadline); });
  for (std::size_t i = 0; i < unknown.size(); ++i) {
    ours[unknown[i]] = answers[i] && isOurs(answers[i]->addresses);
  }
  return ours;
}

bool isThisMachine(const HostSpec& host) { return whichAreThisMachine({host}).front(); }

}  // namespace farandole::launch::hosts
