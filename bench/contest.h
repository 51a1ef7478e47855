// A contest: several contenders measured at the same thing, in turns, in one run; because machines
// are noisy, only such figures can be compared with each other.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "bench/job.h"
#include "bench/processors.h"
#include "bench/rank_group.h"

namespace farandole::bench {

enum class Side { kOurs, kPeer, kBound };

struct Contender {
  std::string name;
  Side side = Side::kOurs;
  RankGroup* group = nullptr;
  Job job;              // bytes are the contest's if sized
  bool sized = true;    // false: job.bytes stays as it is
  std::string failure;  // not empty: out of the race, and why
};

struct Sample {
  double seconds = 0;
  Distance distance = Distance::kSingle;
};

// What one contender did at one size.
struct Measurement {
  std::string contender;
  Side side = Side::kOurs;
  Memory memory = Memory::kOrdinary;
  Work work = Work::kAllreduce;
  std::size_t bytes = 0;
  std::vector<Sample> samples;
  std::string failure;

  std::vector<double> secondsAt(Distance distance) const;
  std::vector<double> seconds() const;
};

struct ContestSettings {
  int rounds = 15;
  std::vector<int> processors;  // the first two are used for the near/far flag
};

// Checks every contender's result once, finds out how many operations make a measurable time, then
// measures all in turns, `rounds` times; the order rotates. A contender that fails is marked and
// left out from then on.
std::vector<Measurement> runContest(std::vector<Contender>& contenders, std::size_t bytes,
                                    const ContestSettings& settings);

}  // namespace farandole::bench
