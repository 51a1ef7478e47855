// horovodrun --check-build.
#pragma once

#include <string>

#include "compat/translation.h"

namespace farandole::compat {

// What this installation has, in the form Horovod's users know (and their scripts search).
std::string checkBuildText(const Surroundings& here);

}  // namespace farandole::compat
