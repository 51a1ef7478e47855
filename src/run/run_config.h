// Options of `farandole run` that are not typed: from the environment and from a YAML file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace farandole::run {

struct KnownOption {
  std::string name;  // "--num-proc"
  bool takesValue = true;
  bool repeatable = false;
};

// FARANDOLE_RUN_NUM_PROC=4 is --num-proc=4. Flags take 1, true, yes, on; 0, false, no, off leaves
// them out. An empty value leaves out any option. A variable that names no option is an error.
Result<std::vector<std::string>> optionsFromEnvironment(const char* const* environment,
                                                        const std::vector<KnownOption>& known);

// The same from a file: a mapping of option names without dashes ("num-proc: 4"; np, hosts and so
// on as typed, underscores or dashes) to a value, a truth value, or a list for what may be
// repeated. Errors begin with "path:line: ".
Result<std::vector<std::string>> optionsFromYaml(const std::string& path, std::string_view text,
                                                 const std::vector<KnownOption>& known);
Result<std::vector<std::string>> optionsFromFile(const std::string& path,
                                                 const std::vector<KnownOption>& known);

}  // namespace farandole::run
