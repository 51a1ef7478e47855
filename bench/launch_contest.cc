#include "bench/launch_contest.h"

namespace farandole::bench {
namespace {

void attempt(const LaunchContender& contender, bool counted, LaunchMeasurement& measurement) {
  if (!measurement.failure.empty()) return;
  auto sample = contender.attempt();
  if (!sample.ok()) {
    measurement.failure = sample.status().message();
    return;
  }
  if (contender.side == Side::kOurs && !sample->lines.allRight()) {
    measurement.failure = "lines: " + sample->lines.text();
  }
  if (!counted) return;
  measurement.seconds.push_back(sample->seconds);
  measurement.lines += sample->lines;
}

}  // namespace

std::vector<LaunchMeasurement> runLaunchContest(const std::string& subject, std::size_t bytes,
                                                const std::vector<LaunchContender>& contenders,
                                                int rounds) {
  const std::size_t count = contenders.size();
  std::vector<LaunchMeasurement> measurements;
  for (const LaunchContender& contender : contenders) {
    measurements.push_back({subject, contender.name, contender.side, bytes});
    attempt(contender, false, measurements.back());
  }
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t turn = 0; turn < count; ++turn) {
      const std::size_t i = (turn + static_cast<std::size_t>(round)) % count;
      attempt(contenders[i], true, measurements[i]);
    }
  }
  return measurements;
}

}  // namespace farandole::bench
