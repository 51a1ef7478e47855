// Where ranks may run: hosts as people write them.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace farandole::launch::hosts {

// Beyond this, the number after a host is almost surely a port.
inline constexpr int kMostSlots = 1024;

// 0 and "" mean: not given.
struct HostSpec {
  std::string name =
      {};  // name, IPv4 or IPv6 address (without brackets), or an alias of ssh's config
  std::string user = {};
  int port = 0;
  int slots = 0;

  bool operator==(const HostSpec&) const = default;
};

// -H: "a:2,b:2", "user@host:port:slots", "[fe80::1]:2", "node[01-16]:4"; of two numbers the first
// is the port. A host that is repeated without slots has one slot for each time. Names are safe to
// hand to ssh: they never look like an option and hold no character of a shell.
Result<std::vector<HostSpec>> parseHosts(std::string_view list);

// One item of such a list; a range gives several hosts.
Result<std::vector<HostSpec>> parseHostItem(std::string_view item);

// Ok if `name` may be used as the name or address of a host.
Status checkHostName(std::string_view name);

// What parseHosts reads as the same hosts. A port needs slots beside it in this notation: where
// there are none, 1 is printed.
std::string formatHost(const HostSpec& host);
std::string formatHosts(const std::vector<HostSpec>& hosts);

// In advice: the ports to pass on to a container where the user has named none. One for each rank
// of a host is enough.
inline constexpr char kPortsToPass[] = "29400-29431";

// --advertise: addresses under which hosts are reached from outside,
// "alpha=203.0.113.5,beta=203.0.113.6". Host and address of each, in the order typed; a host may
// have several. Every host must be one of `hosts`.
Result<std::vector<std::pair<std::string, std::string>>> parseAdvertised(
    const std::string& text, const std::vector<std::string>& hosts);

}  // namespace farandole::launch::hosts
