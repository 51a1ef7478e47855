// The command under the names of the commands it replaces.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compat/flag_table.h"
#include "compat/translation.h"

namespace farandole::compat {

struct Compat {
  std::string_view name;
  const Grammar& (*grammar)();
  Result<Translation> (*translate)(const std::vector<std::string>& words, const Surroundings& here);
};

// The old command that argv[0] names, by its last part: "/usr/bin/horovodrun", "mpirun".
std::optional<Compat> compatFor(std::string_view argv0);

// First thing in main(). Under our own name nothing happens. Under an old name the words are
// replaced by {"run", …} for main() to go on with, and notes are printed; or everything has been
// said (help, an error) and the exit code is returned.
std::optional<int> runCompat(std::string_view argv0, std::vector<std::string>& words);

}  // namespace farandole::compat
