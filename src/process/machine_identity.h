// Which machine this is, for telling two names of one machine from two machines.
#pragma once

#include <string>

namespace farandole::process {

// The kernel's boot, and the namespace that process numbers belong to.
std::string machineIdentity();
// The kernel's boot, and the namespace that network interfaces belong to.
std::string networkIdentity();

}  // namespace farandole::process
