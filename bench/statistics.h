// Order statistics of a handful of measurements.
#pragma once

#include <vector>

namespace farandole::bench {

struct Summary {
  double median = 0;
  double p10 = 0;
  double p90 = 0;
};

// The value below which `share` (0 … 1) of the values lie, interpolated; 0 without values.
double percentile(std::vector<double> values, double share);
Summary summarise(const std::vector<double>& values);

}  // namespace farandole::bench
