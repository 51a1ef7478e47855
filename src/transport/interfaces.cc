// Which of this machine's addresses are worth telling to other machines.
#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "transport/link_address.h"

namespace farandole::transport {
namespace {

// Bridges for containers and virtual machines have the same address on every machine, so that a
// connection to one often ends at home. They come last; they are not left out, because between
// containers of one machine they work.
bool isLocalBridge(std::string_view name) {
  for (const std::string_view prefix : {"docker", "br-", "virbr", "veth", "podman", "lxcbr"}) {
    if (name.starts_with(prefix)) return true;
  }
  return false;
}

bool chosen(const InterfaceAddress& entry, const std::vector<std::string>& only) {
  return only.empty() || std::any_of(only.begin(), only.end(), [&](const std::string& name) {
           return name == entry.interface || name == entry.address.text();
         });
}

}  // namespace

std::vector<LinkAddress> usefulAddresses(const std::vector<InterfaceAddress>& found,
                                         const std::vector<std::string>& only) {
  std::vector<LinkAddress> ordinary;
  std::vector<LinkAddress> bridges;
  std::vector<LinkAddress> loopback;
  for (const InterfaceAddress& entry : found) {
    if (!chosen(entry, only) || !entry.running || entry.address.isAny()) continue;
    if (entry.address.isLoopback()) {
      loopback.push_back(entry.address);
    } else if (!entry.address.isLinkLocal()) {
      (isLocalBridge(entry.interface) ? bridges : ordinary).push_back(entry.address);
    }
  }
  ordinary.insert(ordinary.end(), bridges.begin(), bridges.end());
  std::vector<LinkAddress>& useful = ordinary.empty() ? loopback : ordinary;
  // IPv4 first within a kind: inner networks with half a set-up of IPv6 are frequent.
  std::stable_sort(
      useful.begin(),
      useful.end() - static_cast<std::ptrdiff_t>(ordinary.empty() ? 0 : bridges.size()),
      [](const LinkAddress& a, const LinkAddress& b) { return a.v6 < b.v6; });
  if (useful.size() > kMaxLinkAddresses) useful.resize(kMaxLinkAddresses);
  return useful;
}

Result<std::vector<InterfaceAddress>> interfaceAddresses() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return Status::fromErrno("cannot list network interfaces", errno);
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, ::freeifaddrs);
  std::vector<InterfaceAddress> found;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    Result<LinkAddress> address = LinkAddress::fromSockaddr(entry->ifa_addr);
    if (!address.ok()) continue;
    address->port = 0;
    const unsigned both = IFF_UP | IFF_RUNNING;
    found.push_back({entry->ifa_name, address.value(), (entry->ifa_flags & both) == both});
  }
  return found;
}

}  // namespace farandole::transport
