// horovodrun's --config-file.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace farandole::compat {

// The keys of the YAML file as flags of horovodrun, each one word.
Result<std::vector<std::string>> horovodConfigFlags(const std::string& path);

}  // namespace farandole::compat
