// Which variables of the user's go with a job to other machines.
#pragma once

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace farandole::launch::plan {

// Those that decide which programs and libraries are found (PATH, virtual environments, conda,
// LD_LIBRARY_PATH, PYTHONPATH), threads (OMP_*, KMP_*), and the families of the field (HOROVOD_*,
// NCCL_*, FI_*, …). Neither secrets of a surrounding job nor what describes this machine.
bool isPassedOn(std::string_view name);

// By its name (HF_TOKEN, …_SECRET, …_PASSWORD, …_KEY), or by an address with credentials in its
// value (https_proxy=http://user:password@host).
bool isSecret(std::string_view name, std::string_view value);

struct PassedEnvironment {
  std::vector<std::pair<std::string, std::string>> variables;
  std::vector<std::string> held;  // would be passed on if they were no secrets
};
PassedEnvironment passedEnvironment(const char* const* environment);

// Whether a name belongs to one of several families.
bool startsWithAny(std::string_view name, const auto& prefixes) {
  return std::any_of(std::begin(prefixes), std::end(prefixes),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

}  // namespace farandole::launch::plan
