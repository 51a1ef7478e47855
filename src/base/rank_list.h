// Ranks as people read them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace farandole {

// {0, 2, 3, 4} → "ranks 0, 2-4"; {1} → "rank 1". In any order.
inline std::string rankList(std::vector<std::int32_t> ranks) {
  std::sort(ranks.begin(), ranks.end());
  std::string text;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    if (!text.empty()) text += ", ";
    text += std::to_string(ranks[i]);
    if (last > i) text += (last == i + 1 ? ", " : "-") + std::to_string(ranks[last]);
    i = last + 1;
  }
  return (ranks.size() == 1 ? "rank " : "ranks ") + text;
}

}  // namespace farandole
