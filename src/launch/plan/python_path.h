// What Python ranks need to find: Farandole's packages, without being installed.
#pragma once

#include <string>
#include <vector>

namespace farandole::launch::plan {

// Puts the folder of the start-up hook (python/farandole_hooks) first into PYTHONPATH of this
// environment ("NAME=value"). That folder holds nothing but the hook, so it hides nothing of the
// user's; the hook appends the packages behind everything else. A tree without Python packages
// changes nothing.
void addPythonPath(std::vector<std::string>& environment);

}  // namespace farandole::launch::plan
