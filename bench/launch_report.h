// LaunchReport: what `farandole bench launch` measured, as a table, CSV and JSON.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "bench/launch_contest.h"
#include "bench/statistics.h"

namespace farandole::bench {

// One contender at one subject.
struct LaunchRow {
  std::string subject;
  std::string contender;
  Side side = Side::kOurs;
  std::size_t rounds = 0;
  Summary time = {};
  double bandwidth = 0;  // bytes per second; 0: no bytes
  LineCount lines = {};
  // Ours: every peer's median / own, the quickest peer first.
  std::vector<std::pair<std::string, double>> ratios = {};
};

class LaunchReport {
 public:
  // Adds what one contest measured and returns the rows it makes: one for each contender that has
  // samples.
  std::vector<LaunchRow> add(const std::vector<LaunchMeasurement>& measurements);

  static std::string header();
  static std::string text(const LaunchRow& row);
  std::string csv() const;
  std::string json() const;

 private:
  std::vector<LaunchMeasurement> measurements_;
  std::vector<LaunchRow> rows_;
};

}  // namespace farandole::bench
