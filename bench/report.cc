#include "bench/report.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "bench/line_plot.h"
#include "bench/sizes.h"

namespace farandole::bench {
namespace {

constexpr std::array kDistances = {Distance::kNear, Distance::kFar, Distance::kMixed,
                                   Distance::kSingle};

Row rowOf(const Measurement& m, Distance distance, int ranks) {
  const std::vector<double> seconds = m.secondsAt(distance);
  Row row;
  row.bytes = m.bytes;
  row.contender = m.contender;
  row.side = m.side;
  row.distance = distance;
  row.rounds = seconds.size();
  row.time = summarise(seconds);
  if (row.time.median > 0 && m.work != Work::kBarrier) {
    row.algorithmBandwidth = static_cast<double>(m.bytes) / row.time.median;
    row.busBandwidth = row.algorithmBandwidth * busFactor(m.work, ranks);
  }
  return row;
}

// Fills in how the row of one of ours stands to the others of its size and class.
void compare(Row& row, Memory memory, const std::vector<Measurement>& all) {
  if (row.side != Side::kOurs || row.time.median <= 0) return;
  double best = 0;
  for (const Measurement& m : all) {
    const double median = percentile(m.secondsAt(row.distance), 0.5);
    if (median <= 0) continue;
    if (m.side == Side::kPeer && (best == 0 || median < best)) {
      best = median;
      row.bestPeer = m.contender;
    }
    if (m.side == Side::kBound && m.memory == memory) row.ofBound = median / row.time.median;
  }
  if (best > 0) row.ratio = best / row.time.median;
}

std::string gigabytes(double perSecond) {
  return perSecond == 0 ? "-" : fmt::format("{:.2f}", perSecond / 1e9);
}

}  // namespace

std::string_view name(Side side) {
  switch (side) {
    case Side::kOurs: return "farandole";
    case Side::kPeer: return "peer";
    case Side::kBound: return "bound";
  }
  return "?";
}

std::string processorModel() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("model name"))
      return line.substr(std::min(line.size(), line.find(':') + 2));
  }
  return "unknown";
}

std::vector<Row> Report::add(const std::vector<Measurement>& measurements) {
  std::vector<Row> rows;
  for (const Distance distance : kDistances) {
    for (const Measurement& m : measurements) {
      if (m.secondsAt(distance).empty()) continue;
      rows.push_back(rowOf(m, distance, ranks_));
      compare(rows.back(), m.memory, measurements);
    }
  }
  measurements_.insert(measurements_.end(), measurements.begin(), measurements.end());
  rows_.insert(rows_.end(), rows.begin(), rows.end());
  return rows;
}

std::string Report::header() {
  return fmt::format("{:>7}  {:<24} {:<6} {:>6} {:>10} {:>10} {:>10} {:>8} {:>8}  {:<20} {}",
                     "bytes", "contender", "class", "rounds", "median", "p10", "p90", "alg GB/s",
                     "bus GB/s", "against best peer", "of bound");
}

std::string Report::text(const Row& row) {
  const std::string ratio =
      row.ratio > 0 ? fmt::format("{:.2f}x {}", row.ratio, row.bestPeer) : std::string("-");
  const std::string bound =
      row.ofBound > 0 ? fmt::format("{:.0f} %", row.ofBound * 100) : std::string("-");
  return fmt::format("{:>7}  {:<24} {:<6} {:>6} {:>10} {:>10} {:>10} {:>8} {:>8}  {:<20} {}",
                     sizeText(row.bytes), row.contender, bench::name(row.distance), row.rounds,
                     timeText(row.time.median), timeText(row.time.p10), timeText(row.time.p90),
                     gigabytes(row.algorithmBandwidth), gigabytes(row.busBandwidth), ratio, bound);
}

std::string Report::ratios() const {
  std::string lines;
  for (const Row& row : rows_) {
    if (row.side != Side::kOurs || row.ratio == 0) continue;
    lines += fmt::format("{:>7}  {:<24} {:<6} {:>7.2f}x  {}\n", sizeText(row.bytes), row.contender,
                         bench::name(row.distance), row.ratio, row.bestPeer);
  }
  if (lines.empty()) return lines;
  return fmt::format("{:>7}  {:<24} {:<6} {:>8}  {}\n", "bytes", "contender", "class", "speed",
                     "against") +
         lines;
}

std::string Report::csv() const {
  std::string out =
      "bytes,contender,side,class,rounds,median_s,p10_s,p90_s,alg_bytes_per_s,bus_bytes_per_s,"
      "ratio_to_best_peer,best_peer,of_bound\n";
  for (const Row& r : rows_) {
    out += fmt::format("{},{},{},{},{},{:.9g},{:.9g},{:.9g},{:.6g},{:.6g},{:.4g},{},{:.4g}\n",
                       r.bytes, r.contender, name(r.side), bench::name(r.distance), r.rounds,
                       r.time.median, r.time.p10, r.time.p90, r.algorithmBandwidth, r.busBandwidth,
                       r.ratio, r.bestPeer, r.ofBound);
  }
  return out;
}

std::string Report::json() const {
  nlohmann::json document;
  utsname system{};
  uname(&system);
  document["title"] = title_;
  document["ranks"] = ranks_;
  document["machine"] = {{"processor", processorModel()},
                         {"processors", allowedProcessors().size()},
                         {"kernel", system.release}};
  document["rows"] = nlohmann::json::array();
  for (const Row& r : rows_) {
    document["rows"].push_back({{"bytes", r.bytes},
                                {"contender", r.contender},
                                {"side", name(r.side)},
                                {"class", bench::name(r.distance)},
                                {"rounds", r.rounds},
                                {"median_s", r.time.median},
                                {"p10_s", r.time.p10},
                                {"p90_s", r.time.p90},
                                {"alg_bytes_per_s", r.algorithmBandwidth},
                                {"bus_bytes_per_s", r.busBandwidth},
                                {"ratio_to_best_peer", r.ratio},
                                {"best_peer", r.bestPeer},
                                {"of_bound", r.ofBound}});
  }
  document["samples"] = nlohmann::json::array();
  for (const Measurement& m : measurements_) {
    nlohmann::json samples = nlohmann::json::array();
    for (const Sample& s : m.samples) samples.push_back({s.seconds, bench::name(s.distance)});
    document["samples"].push_back({{"bytes", m.bytes},
                                   {"contender", m.contender},
                                   {"failure", m.failure},
                                   {"seconds", std::move(samples)}});
  }
  return document.dump(1) + "\n";
}

std::string Report::svg() const {
  LinePlot plot(title_, "bytes", "median time");
  for (const Measurement& m : measurements_) {
    const double median = percentile(m.seconds(), 0.5);
    if (median > 0) plot.add(m.contender, static_cast<double>(m.bytes), median);
  }
  return plot.svg();
}

Status writeFile(const std::string& path, const std::string& content) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << content;
  out.close();
  return out ? Status() : Status::unavailable("cannot write " + path);
}

void say(const std::string& text) {
  std::fputs((text + "\n").c_str(), stdout);
  std::fflush(stdout);
}

}  // namespace farandole::bench
