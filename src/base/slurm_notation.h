// Slurm's notation: names with number ranges in brackets (node[01-16], rack[0-1]n[1,3,5-7]-ib), and
// numbers of successive nodes (2(x3),1).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace farandole {

// Beyond this a range is a typing error.
inline constexpr int kMostHosts = 65536;

// Every name the pattern stands for, in the order written; the last bracket changes fastest. Zero
// padding is kept. A pattern without brackets is its only name. The names are not checked.
Result<std::vector<std::string>> expandHostRange(std::string_view pattern);

// What stands between the commas that are outside brackets.
Result<std::vector<std::string_view>> splitHostList(std::string_view list);

// "2(x3),1" is 2, 2, 2, 1; not more than kMostHosts numbers, none of them larger than that.
Result<std::vector<int>> expandCounts(std::string_view text);

}  // namespace farandole
