#include "bench/statistics.h"

#include <algorithm>
#include <cmath>

namespace farandole::bench {

double percentile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double place = std::clamp(share, 0.0, 1.0) * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(std::floor(place));
  const std::size_t above = std::min(below + 1, values.size() - 1);
  const double part = place - static_cast<double>(below);
  return values[below] * (1 - part) + values[above] * part;
}

Summary summarise(const std::vector<double>& values) {
  return {percentile(values, 0.5), percentile(values, 0.1), percentile(values, 0.9)};
}

}  // namespace farandole::bench
