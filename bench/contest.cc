#include "bench/contest.h"

#include <algorithm>
#include <cmath>

namespace farandole::bench {
namespace {

constexpr double kTimedSeconds = 0.010;  // aimed at for one sample
constexpr double kWarmSeconds = 0.050;   // run in before the first sample, and
constexpr int kWarmOperations = 8;       // at least so many, unless that takes
constexpr double kMostWarmSeconds = 0.5;
constexpr int kMostIterations = 50'000;
constexpr auto kAnswerTime = std::chrono::seconds(90);

int iterationsFor(double wanted, double each) {
  const double n = std::ceil(wanted / std::max(each, 1e-9));
  return static_cast<int>(std::clamp<double>(n, 1, kMostIterations));
}

// Runs one job; a failure puts the contender out of the race.
double attempt(Contender& contender, const Job& job) {
  auto seconds = contender.group->run(job, Deadline::after(kAnswerTime));
  if (seconds.ok()) return *seconds;
  contender.failure = seconds.status().message();
  return 0;
}

// Checks the result, runs the contender in, and settles how many operations one sample has.
void prepare(Contender& contender, Job& job) {
  job.check = true;
  job.warmup = 0;
  job.iterations = 1;
  double each = attempt(contender, job);
  job.check = false;
  double spent = 0;
  int operations = 0;
  const auto warm = [&] {
    return spent >= kMostWarmSeconds || (spent >= kWarmSeconds && operations >= kWarmOperations);
  };
  while (contender.failure.empty() && !warm()) {
    job.iterations = iterationsFor(kTimedSeconds, each);
    each = attempt(contender, job);
    spent += each * job.iterations;
    operations += job.iterations;
  }
  job.iterations = iterationsFor(kTimedSeconds, each);
  job.warmup = std::clamp(job.iterations / 10, 1, 100);
}

}  // namespace

std::vector<double> Measurement::secondsAt(Distance distance) const {
  std::vector<double> values;
  for (const Sample& sample : samples) {
    if (sample.distance == distance) values.push_back(sample.seconds);
  }
  return values;
}

std::vector<double> Measurement::seconds() const {
  std::vector<double> values;
  for (const Sample& sample : samples) values.push_back(sample.seconds);
  return values;
}

std::vector<Measurement> runContest(std::vector<Contender>& contenders, std::size_t bytes,
                                    const ContestSettings& settings) {
  const std::size_t count = contenders.size();
  std::vector<Measurement> measurements(count);
  std::vector<Job> jobs(count);
  for (std::size_t i = 0; i < count; ++i) {
    jobs[i] = contenders[i].job;
    if (contenders[i].sized) jobs[i].bytes = bytes;
    if (contenders[i].failure.empty()) prepare(contenders[i], jobs[i]);
  }
  const int one = settings.processors.front();
  const int other = settings.processors[1 % settings.processors.size()];
  double before = flagCrossing(one, other);
  for (int round = 0; round < settings.rounds; ++round) {
    std::vector<double> seconds(count, 0);
    for (std::size_t turn = 0; turn < count; ++turn) {
      const std::size_t i = (turn + static_cast<std::size_t>(round)) % count;
      if (contenders[i].failure.empty()) seconds[i] = attempt(contenders[i], jobs[i]);
    }
    const double after = flagCrossing(one, other);
    for (std::size_t i = 0; i < count; ++i) {
      if (contenders[i].failure.empty()) {
        measurements[i].samples.push_back({seconds[i], classify(before, after)});
      }
    }
    before = after;
  }
  for (std::size_t i = 0; i < count; ++i) {
    measurements[i].contender = contenders[i].name;
    measurements[i].side = contenders[i].side;
    measurements[i].memory = jobs[i].memory;
    measurements[i].work = jobs[i].work;
    measurements[i].bytes = jobs[i].bytes;
    measurements[i].failure = contenders[i].failure;
  }
  return measurements;
}

}  // namespace farandole::bench
