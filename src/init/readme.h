// README.md of a set-up: the exact commands for these machines.
#pragma once

#include <string>

#include "init/cluster_spec.h"

namespace farandole::init {

std::string readmeText(const ClusterSpec& spec, const std::string& identityName);

}  // namespace farandole::init
