// Sets of CPUs as the kernel writes them: "0-3,8".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace farandole::process {

using CpuSet = std::vector<int>;  // ascending, each once

// CPU numbers are below this.
inline constexpr int kMostCpus = 16384;

// Errors name the text; an empty list is one too.
Result<CpuSet> parseCpuList(std::string_view text);

// "" for no CPUs.
std::string formatCpuList(const CpuSet& cpus);

// --cpus: "0-3;4-7", the set of each local rank.
Result<std::vector<CpuSet>> parseCpuSets(std::string_view text);

// The CPUs that are in both.
CpuSet commonCpus(const CpuSet& a, const CpuSet& b);

}  // namespace farandole::process
