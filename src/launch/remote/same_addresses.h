// Hosts that cannot find each other because they have the same addresses: containers on the bridges
// of two machines, for instance, each of which is 172.17.0.2 there.
#pragma once

#include <string>
#include <vector>

namespace farandole::launch::remote {

struct HostAddresses {
  std::string name;
  std::string network;                 // equal on two hosts: they share one network
  std::vector<std::string> addresses;  // its own
  std::string outside;                 // where it seems to be reached, "" if that is not known
  bool advertised = false;             // the user has said where
};

// Those of this machine, which the job knows by this name.
HostAddresses addressesHere(const std::string& name, bool advertised);

// What is wrong and what to type, or "". dataPorts: as the user gave them, or "".
std::string sameAddresses(const std::vector<HostAddresses>& hosts, const std::string& dataPorts);

}  // namespace farandole::launch::remote
