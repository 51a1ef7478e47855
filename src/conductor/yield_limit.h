// YieldLimit: how long a waiting driver stays awake, beyond its spin, before it sleeps.
//
// To be woken takes microseconds, but milliseconds where the idle processor is a virtual one that
// its host has given to somebody else meanwhile. So a driver that waits stays awake as long as
// recent waits suggest that it will not be for long. It yields: whoever else wants the processor
// has it. Waits that take long, those for a rank that evaluates, cost nothing.
//
// The driver's alone.
#pragma once

#include <algorithm>

#include "base/clock.h"

namespace farandole::conductor {

class YieldLimit {
 public:
  // Zero: never.
  explicit YieldLimit(Duration limit) : limit_(limit) {}

  Duration limit() const { return limit_; }
  // For something that may take any time.
  Duration now() const { return score_ >= kMost / 2 ? limit_ : Duration::zero(); }
  // So long did a wait take; those that ended while the driver still spun tell nothing.
  void waited(Duration idle) { score_ = std::clamp(score_ + (idle < limit_ ? 1 : -1), 0, kMost); }

 private:
  static constexpr int kMost = 8;

  Duration limit_;
  int score_ = kMost;
};

}  // namespace farandole::conductor
