#include "bench/launch_report.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "bench/report.h"
#include "bench/sizes.h"

namespace farandole::bench {
namespace {

using Ratios = std::vector<std::pair<std::string, double>>;

Ratios ratiosOf(const LaunchRow& row, const std::vector<LaunchMeasurement>& all) {
  Ratios ratios;
  if (row.side != Side::kOurs || row.time.median <= 0) return ratios;
  for (const LaunchMeasurement& m : all) {
    const double median = percentile(m.seconds, 0.5);
    if (m.side == Side::kPeer && median > 0) {
      ratios.emplace_back(m.contender, median / row.time.median);
    }
  }
  std::stable_sort(ratios.begin(), ratios.end(),
                   [](const auto& a, const auto& b) { return a.second < b.second; });
  return ratios;
}

// "1.30x mpich, 5.81x openmpi"
std::string textOf(const Ratios& ratios) {
  std::string text;
  for (const auto& [peer, ratio] : ratios) {
    text += fmt::format("{}{:.2f}x {}", text.empty() ? "" : ", ", ratio, peer);
  }
  return text.empty() ? "-" : text;
}

bool hasLines(const LaunchRow& row) { return row.lines.whole > 0 || !row.lines.allRight(); }

}  // namespace

std::vector<LaunchRow> LaunchReport::add(const std::vector<LaunchMeasurement>& measurements) {
  std::vector<LaunchRow> rows;
  for (const LaunchMeasurement& m : measurements) {
    if (m.seconds.empty()) continue;
    LaunchRow row{m.subject, m.contender, m.side, m.seconds.size(), summarise(m.seconds)};
    if (m.bytes > 0 && row.time.median > 0) {
      row.bandwidth = static_cast<double>(m.bytes) / row.time.median;
    }
    row.lines = m.lines;
    row.ratios = ratiosOf(row, measurements);
    rows.push_back(std::move(row));
  }
  measurements_.insert(measurements_.end(), measurements.begin(), measurements.end());
  rows_.insert(rows_.end(), rows.begin(), rows.end());
  return rows;
}

std::string LaunchReport::header() {
  return fmt::format("{:<22} {:<20} {:>6} {:>9} {:>9} {:>9} {:>7}  {:<42} {}", "what", "contender",
                     "rounds", "median", "p10", "p90", "MB/s", "lines", "speed against");
}

std::string LaunchReport::text(const LaunchRow& row) {
  const std::string bandwidth =
      row.bandwidth > 0 ? fmt::format("{:.0f}", row.bandwidth / 1e6) : std::string("-");
  return fmt::format("{:<22} {:<20} {:>6} {:>9} {:>9} {:>9} {:>7}  {:<42} {}", row.subject,
                     row.contender, row.rounds, timeText(row.time.median), timeText(row.time.p10),
                     timeText(row.time.p90), bandwidth, hasLines(row) ? row.lines.text() : "-",
                     textOf(row.ratios));
}

std::string LaunchReport::csv() const {
  std::string out =
      "what,contender,side,rounds,median_s,p10_s,p90_s,bytes_per_s,lines_whole,lines_torn,"
      "lines_lost,lines_repeated,lines_disordered,ratio_to_best_peer,best_peer\n";
  for (const LaunchRow& r : rows_) {
    const bool compared = !r.ratios.empty();
    out +=
        fmt::format("\"{}\",{},{},{},{:.9g},{:.9g},{:.9g},{:.6g},{},{},{},{},{},{:.4g},{}\n",
                    r.subject, r.contender, name(r.side), r.rounds, r.time.median, r.time.p10,
                    r.time.p90, r.bandwidth, r.lines.whole, r.lines.torn, r.lines.lost,
                    r.lines.repeated, r.lines.disordered, compared ? r.ratios.front().second : 0.0,
                    compared ? r.ratios.front().first : std::string());
  }
  return out;
}

std::string LaunchReport::json() const {
  nlohmann::json document;
  utsname system{};
  uname(&system);
  document["title"] = "launch";
  document["machine"] = {{"processor", processorModel()},
                         {"processors", allowedProcessors().size()},
                         {"kernel", system.release}};
  document["rows"] = nlohmann::json::array();
  for (const LaunchRow& r : rows_) {
    nlohmann::json ratios = nlohmann::json::object();
    for (const auto& [peer, ratio] : r.ratios) ratios[peer] = ratio;
    document["rows"].push_back({{"what", r.subject},
                                {"contender", r.contender},
                                {"side", name(r.side)},
                                {"rounds", r.rounds},
                                {"median_s", r.time.median},
                                {"p10_s", r.time.p10},
                                {"p90_s", r.time.p90},
                                {"bytes_per_s", r.bandwidth},
                                {"lines",
                                 {{"whole", r.lines.whole},
                                  {"torn", r.lines.torn},
                                  {"lost", r.lines.lost},
                                  {"repeated", r.lines.repeated},
                                  {"disordered", r.lines.disordered}}},
                                {"ratios", std::move(ratios)}});
  }
  document["samples"] = nlohmann::json::array();
  for (const LaunchMeasurement& m : measurements_) {
    document["samples"].push_back({{"what", m.subject},
                                   {"contender", m.contender},
                                   {"bytes", m.bytes},
                                   {"failure", m.failure},
                                   {"seconds", m.seconds}});
  }
  return document.dump(1) + "\n";
}

}  // namespace farandole::bench
