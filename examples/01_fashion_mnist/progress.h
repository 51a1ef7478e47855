// What a person sees while it trains.
#pragma once

#include <chrono>
#include <cstddef>

namespace fashion {

// A bar that is redrawn on a terminal, one line per epoch otherwise. Prints to standard output, and
// only if visible (rank 0). One thread.
class Progress {
 public:
  Progress(bool visible, int firstEpoch, int epochs, std::size_t stepsPerEpoch,
           std::size_t imagesPerStep);

  void beginEpoch(int epoch);
  // After every step; returns at once most of the time.
  void step(std::size_t done, double loss);
  // True if step() would print now: only then is the loss needed.
  bool due(std::size_t done) const;
  void endEpoch(double seconds, std::size_t images, double loss, double accuracy);

 private:
  using Clock = std::chrono::steady_clock;
  double secondsLeft(double epochsDone) const;
  void clearLine() const;

  const bool visible_;
  const bool terminal_;
  const int firstEpoch_;
  const int epochs_;
  const std::size_t stepsPerEpoch_;
  const std::size_t imagesPerStep_;
  const Clock::time_point start_ = Clock::now();
  Clock::time_point epochStart_ = start_;
  Clock::time_point lastDrawn_{};
  int epoch_ = 0;
};

}  // namespace fashion
