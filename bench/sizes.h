// Sizes in bytes as people write them: "4", "16K", "1MiB", "256M".
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace farandole::bench {

// Powers of 1024; at most 1 TiB.
Result<std::size_t> parseSize(std::string_view text);
// Separated by commas.
Result<std::vector<std::size_t>> parseSizes(std::string_view text);
// The shortest exact form: "16K", "1M", "1000".
std::string sizeText(std::size_t bytes);
// Three significant digits and a unit: "0.21 us", "5.72 ms".
std::string timeText(double seconds);

}  // namespace farandole::bench
