// Commands measured in turns: what `farandole bench launch` does instead of contest.h, whose ranks
// are started once.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "bench/contest.h"
#include "bench/launch_lines.h"

namespace farandole::bench {

struct LaunchSample {
  double seconds = 0;
  LineCount lines = {};
};

struct LaunchContender {
  std::string name;
  Side side = Side::kOurs;
  std::function<Result<LaunchSample>()> attempt;
};

// What one contender did.
struct LaunchMeasurement {
  std::string subject;  // "start, 2 ranks"
  std::string contender;
  Side side = Side::kOurs;
  std::size_t bytes = 0;  // moved in each sample; 0: none are counted
  std::vector<double> seconds = {};
  LineCount lines = {};  // of all samples
  std::string failure = {};
};

// Tries every contender once without counting it (files come from the disk, Farandole is copied to
// a host), then measures all in turns, `rounds` times; the order rotates. One of ours that loses or
// tears a line has failed; of others it is only counted. Who fails is left out from then on.
std::vector<LaunchMeasurement> runLaunchContest(const std::string& subject, std::size_t bytes,
                                                const std::vector<LaunchContender>& contenders,
                                                int rounds);

}  // namespace farandole::bench
