// Report: measurements as a table for people, and as CSV, JSON and SVG for everything else.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "bench/contest.h"
#include "bench/statistics.h"

namespace farandole::bench {

// One contender at one size in one near/far class.
struct Row {
  std::size_t bytes = 0;
  std::string contender;
  Side side = Side::kOurs;
  Distance distance = Distance::kSingle;
  std::size_t rounds = 0;
  Summary time;
  double algorithmBandwidth = 0;  // bytes per second
  double busBandwidth = 0;
  double ratio =
      0;  // ours: time of the best peer in the same class / own time; 0: nothing to compare
  std::string bestPeer;
  double ofBound = 0;  // ours: time of the bound for the same kind of memory / own time; 0: unknown
};

class Report {
 public:
  Report(std::string title, int ranks) : title_(std::move(title)), ranks_(ranks) {}

  // Adds what one contest measured and returns the rows it makes.
  std::vector<Row> add(const std::vector<Measurement>& measurements);

  static std::string header();
  static std::string text(const Row& row);
  // Our contenders' ratios to the best peer, one line per size, contender and class; "" without
  // peers.
  std::string ratios() const;
  std::string csv() const;
  std::string json() const;
  std::string svg() const;

 private:
  std::string title_;
  int ranks_;
  std::vector<Measurement> measurements_;
  std::vector<Row> rows_;
};

std::string_view name(Side side);  // "farandole", "peer", "bound"
std::string processorModel();      // as the kernel names it
Status writeFile(const std::string& path, const std::string& content);

// A line on stdout, at once.
void say(const std::string& text);

}  // namespace farandole::bench
