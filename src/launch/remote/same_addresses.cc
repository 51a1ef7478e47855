#include "launch/remote/same_addresses.h"

#include <algorithm>

#include "launch/facts/facts.h"
#include "launch/hosts/host_spec.h"
#include "process/machine_identity.h"

namespace farandole::launch::remote {

HostAddresses addressesHere(const std::string& name, bool advertised) {
  return {name, process::networkIdentity(), launch::facts::ownAddresses(), {}, advertised};
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
    const std::string ports = dataPorts.empty() ? launch::hosts::kPortsToPass : dataPorts;
    return "hosts " + names + " have the same address " + first.addresses.front() +
           " (containers on the bridges of several machines?), so their ranks cannot find each "
           "other: pass ports on to them (docker run -p " +
           ports + ":" + ports + ") and say where they are reached: --advertise " + advertise +
           " --data-ports " + ports + "; or give the containers --network host";
  }
  return {};
}

}  // namespace farandole::launch::remote
