// OutputPace: lets a stream of output gather for a moment before it is read again.
//
// A reader that reads as soon as there is something is woken for every piece that its writer
// writes, and two such processes take turns on the processor instead of working side by side. After
// a round that has taken much output, but less than would fill the pipe in a moment, the pipes are
// left alone for a fifth of a millisecond. A few lines, and a writer that waits for us, are never
// made to wait.
#pragma once

#include <algorithm>
#include <cstddef>

#include "base/clock.h"

namespace farandole::launch::output {

class OutputPace {
 public:
  void took(std::size_t bytes) { round_ += bytes; }
  // After each round of reading.
  void endRound(TimePoint now) {
    if (round_ >= kNearlyFull) {
      rest_ = std::max<Duration>(rest_ / 2, kShortest);
    } else if (round_ >= kMuch) {
      until_ = std::max<TimePoint>(until_, now + rest_);
      if (round_ < kNearlyFull / 2) rest_ = std::min<Duration>(rest_ * 2, kLongest);
    }
    round_ = 0;
  }
  // The next pipe is full, and a large one: its reader has enough to do for longer than that.
  void full(TimePoint now) { until_ = now + kWhileFull; }
  bool rests(TimePoint now) const { return now < until_; }
  // How long to wait for other events, at most.
  Duration left(TimePoint now, Duration limit) const {
    return rests(now) ? std::min<Duration>(limit, until_ - now) : limit;
  }

 private:
  static constexpr std::size_t kMuch = std::size_t{8} << 10;
  static constexpr std::size_t kNearlyFull = std::size_t{128} << 10;  // pipes have 256 KiB
  static constexpr auto kShortest = std::chrono::microseconds(100);
  static constexpr auto kLongest = std::chrono::microseconds(1000);
  static constexpr auto kWhileFull = std::chrono::microseconds(500);

  std::size_t round_ = 0;      // bytes taken in this round
  Duration rest_ = kShortest;  // long enough for a good part of a pipe to gather
  TimePoint until_{};
};

}  // namespace farandole::launch::output
