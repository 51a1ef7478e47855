// LinePlot: a plot with logarithmic axes as an SVG document; one line per series.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace farandole::bench {

class LinePlot {
 public:
  LinePlot(std::string title, std::string xLabel, std::string yLabel)
      : title_(std::move(title)), xLabel_(std::move(xLabel)), yLabel_(std::move(yLabel)) {}

  // x is a size in bytes, y a time in seconds; both > 0. Points of a series come in drawing order.
  void add(const std::string& series, double x, double y);
  std::string svg() const;

 private:
  struct Series {
    std::string name;
    std::vector<std::pair<double, double>> points;
  };
  struct Range {
    double low = 0;
    double high = 1;
  };
  Range range(bool x) const;  // of log2(x) or log10(y), widened to whole numbers

  std::string title_;
  std::string xLabel_;
  std::string yLabel_;
  std::vector<Series> series_;
};

}  // namespace farandole::bench
