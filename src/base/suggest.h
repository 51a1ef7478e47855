// "Did you mean …?"
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace farandole {

// The candidate that differs from the word by the fewest typing errors, if these are few enough.
std::optional<std::string> closest(const std::string& word,
                                   const std::vector<std::string>& candidates);

}  // namespace farandole
