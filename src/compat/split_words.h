// Words in one string, as in --mpi-args="-x A='b c'".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace farandole::compat {

// Blanks divide; '…', "…" and \ protect. Nothing is expanded.
Result<std::vector<std::string>> splitShellWords(std::string_view text);

// At commas; empty parts are dropped.
std::vector<std::string> splitList(std::string_view text);

// For showing: words that a shell would take apart are quoted.
std::string joinWords(const std::vector<std::string>& words);

}  // namespace farandole::compat
