// The learning rate of a step.
#pragma once

#include <cmath>
#include <cstddef>
#include <numbers>

namespace fashion {

// Rises linearly to the peak (the rate of one rank × the number of ranks: a global batch that is n
// times as large allows steps n times as long, once the first chaos is over), then falls along a
// cosine to nothing.
struct Schedule {
  double peak = 0;
  std::size_t warmupSteps = 0;
  std::size_t totalSteps = 1;

  double rate(std::size_t step) const {
    const auto now = static_cast<double>(step);
    const auto warmup = static_cast<double>(warmupSteps);
    if (step < warmupSteps) return peak * (now + 1) / (warmup + 1);
    const double rest = static_cast<double>(totalSteps) - warmup;
    if (rest <= 0) return peak;
    return peak * 0.5 * (1 + std::cos(std::numbers::pi * (now - warmup) / rest));
  }
};

}  // namespace fashion
