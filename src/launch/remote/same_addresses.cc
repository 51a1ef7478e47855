#include "launch/remote/same_addresses.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "launch/doctor/fact_items.h"
#include "launch/doctor/links.h"
#include "launch/hosts/advertised.h"

namespace farandole::remote {

std::string networkIdentity() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  char space[64] = {};
  const ssize_t n = ::readlink("/proc/self/ns/net", space, sizeof(space) - 1);
  return boot + " " + std::string(space, n > 0 ? static_cast<std::size_t>(n) : 0);
}

std::vector<std::string> ownAddresses() {
  std::vector<std::string> addresses = linkAddresses({{"interfaces", fact_items::interfaces()}});
  std::sort(addresses.begin(), addresses.end());
  return addresses;
}

std::string sameAddresses(const std::vector<HostAddresses>& hosts, const std::string& dataPorts) {
  const auto twins = [](const HostAddresses& a, const HostAddresses& b) {
    // One that is reached is enough: it need not reach the other itself.
    return !a.advertised && !b.advertised && a.network != b.network && !a.addresses.empty() &&
           a.addresses == b.addresses;
  };
  for (const HostAddresses& first : hosts) {
    std::string names;
    std::string advertise;
    for (const HostAddresses& other : hosts) {
      if (&other != &first && !twins(first, other)) continue;
      names += (names.empty() ? "" : ", ") + other.name;
      advertise += (advertise.empty() ? "" : ",") + other.name + "=" +
                   (other.outside.empty() ? "ADDRESS" : other.outside);
    }
    if (names.find(',') == std::string::npos) continue;
    const std::string ports = dataPorts.empty() ? kPortsToPass : dataPorts;
    return "hosts " + names + " have the same address " + first.addresses.front() +
           " (containers on the bridges of several machines?), so their ranks cannot find each "
           "other: pass ports on to them (docker run -p " +
           ports + ":" + ports + ") and say where they are reached: --advertise " + advertise +
           " --data-ports " + ports + "; or give the containers --network host";
  }
  return {};
}

}  // namespace farandole::remote
