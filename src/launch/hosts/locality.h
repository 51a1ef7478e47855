// Which of the hosts a person named is this machine.
#pragma once

#include <string>
#include <vector>

#include "launch/hosts/host_spec.h"

namespace farandole::launch::hosts {

// By address, never by an equal host name: containers are often all called the same. A host with
// an ssh port of its own, or with another user, is reached by ssh even if the address is ours: that
// is how containers of one machine are told apart. Asks the resolver once, for all names at the
// same time; a name without an address, or without an answer within three seconds, is not ours.
std::vector<bool> whichAreThisMachine(const std::vector<HostSpec>& hosts);
bool isThisMachine(const HostSpec& host);

}  // namespace farandole::launch::hosts
