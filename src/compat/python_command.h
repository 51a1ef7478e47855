// The command of launchers that start Python by themselves: torchrun, ipexrun.
#pragma once

#include <string>
#include <vector>

#include "compat/flag_table.h"
#include "compat/translation.h"

namespace farandole::compat {

// "train.py …" → "python3 -u train.py …"; with -m a module; with --no-python as it is.
// anyName: scripts need not end in .py.
std::vector<std::string> pythonCommand(const Given& given, const Surroundings& here, bool anyName);

}  // namespace farandole::compat
