#include "bench/line_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "bench/sizes.h"

namespace farandole::bench {
namespace {

constexpr double kWidth = 960;
constexpr double kHeight = 560;
constexpr double kLeft = 80;
constexpr double kRight = 220;  // holds the legend
constexpr double kTop = 50;
constexpr double kBottom = 60;
constexpr std::array<std::string_view, 8> kColours = {"#0b6e4f", "#d1495b", "#00798c", "#edae49",
                                                      "#6a4c93", "#30638e", "#8d5524", "#555555"};

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '&': out += "&amp;"; break;
      default: out += c;
    }
  }
  return out;
}

std::string label(double x, double y, std::string_view anchor, std::string_view text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
                     escaped(text));
}

std::string gridLine(double x1, double y1, double x2, double y2) {
  return fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#ddd\"/>\n", x1, y1,
      x2, y2);
}

}  // namespace

void LinePlot::add(const std::string& series, double x, double y) {
  const auto found = std::find_if(series_.begin(), series_.end(),
                                  [&series](const Series& s) { return s.name == series; });
  if (found != series_.end()) {
    found->points.emplace_back(x, y);
  } else {
    series_.push_back({series, {{x, y}}});
  }
}

LinePlot::Range LinePlot::range(bool x) const {
  double low = 1e300;
  double high = -1e300;
  for (const Series& series : series_) {
    for (const auto& point : series.points) {
      const double value = x ? std::log2(point.first) : std::log10(point.second);
      low = std::min(low, value);
      high = std::max(high, value);
    }
  }
  if (low > high) return {};
  low = std::floor(low);
  return {low, std::max(std::ceil(high), low + 1)};
}

std::string LinePlot::svg() const {
  const Range xs = range(true);
  const Range ys = range(false);
  const auto placeX = [&](double logged) {
    return kLeft + (logged - xs.low) / (xs.high - xs.low) * (kWidth - kLeft - kRight);
  };
  const auto placeY = [&](double logged) {
    return kHeight - kBottom - (logged - ys.low) / (ys.high - ys.low) * (kHeight - kTop - kBottom);
  };
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\" font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n",
      kWidth, kHeight);
  out += label(kLeft, kTop - 20, "start", title_);
  out += label((kLeft + kWidth - kRight) / 2, kHeight - 15, "middle", xLabel_);
  out += label(kLeft - 8, kTop - 6, "end", yLabel_);
  for (double x = xs.low; x <= xs.high; x += 2) {
    out += gridLine(placeX(x), kTop, placeX(x), kHeight - kBottom);
    out += label(placeX(x), kHeight - kBottom + 18, "middle",
                 sizeText(static_cast<std::size_t>(std::exp2(x))));
  }
  for (double y = ys.low; y <= ys.high; y += 1) {
    out += gridLine(kLeft, placeY(y), kWidth - kRight, placeY(y));
    out += label(kLeft - 8, placeY(y) + 4, "end", timeText(std::pow(10.0, y)));
  }
  for (std::size_t i = 0; i < series_.size(); ++i) {
    const std::string_view colour = kColours[i % kColours.size()];
    std::string points;
    for (const auto& [x, y] : series_[i].points) {
      points += fmt::format("{:.1f},{:.1f} ", placeX(std::log2(x)), placeY(std::log10(y)));
    }
    const double y = kTop + 18.0 * static_cast<double>(i);
    out += fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>\n",
                       points, colour);
    out += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"12\" height=\"12\" fill=\"{}\"/>\n",
                       kWidth - kRight + 16, y, colour);
    out += label(kWidth - kRight + 34, y + 10, "start", series_[i].name);
  }
  return out + "</svg>\n";
}

}  // namespace farandole::bench
