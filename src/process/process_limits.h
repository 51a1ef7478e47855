// Which limit it was when the system refuses a new process.
#pragma once

#include <string_view>

#include "base/status.h"

namespace farandole::process {

// The status of a failed fork, vfork or clone, with what can be done about it.
Status cannotStartProcess(std::string_view what, int error);

}  // namespace farandole::process
