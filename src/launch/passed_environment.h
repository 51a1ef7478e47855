// Which variables of the user's go with a job to other machines.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace farandole {

// Those that decide which programs and libraries are found (PATH, virtual environments, conda,
// LD_LIBRARY_PATH, PYTHONPATH), threads (OMP_*, KMP_*), and the families of the field (HOROVOD_*,
// NCCL_*, FI_*, …). Neither secrets of a surrounding job nor what describes this machine.
bool isPassedOn(std::string_view name);

std::vector<std::pair<std::string, std::string>> passedEnvironment(const char* const* environment);

}  // namespace farandole
