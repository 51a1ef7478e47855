// The command of launchers that start Python by themselves: torchrun, ipexrun.
#pragma once

#include <string>
#include <vector>

#include "launch/compat/flag_table.h"
#include "launch/compat/translation.h"

namespace farandole {

// "train.py …" → "python3 -u train.py …"; with -m a module; with --no-python as it is.
std::vector<std::string> pythonCommand(const Given& given, const Surroundings& here);

}  // namespace farandole
