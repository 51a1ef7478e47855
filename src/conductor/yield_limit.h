// YieldLimit: how long a waiting driver stays awake, after it has spun and before it sleeps.
//
// Being woken takes microseconds, but milliseconds if the idle processor is a virtual one that its
// host has given away meanwhile. So a waiting driver stays awake as long as recent waits suggest
// that the wait will be short. It yields the processor to any thread that wants it. If waits are
// long, because a rank evaluates for instance, it goes to sleep at once.
//
// Used by the driver only.
#pragma once

#include <algorithm>

#include "base/clock.h"

namespace farandole::conductor {

class YieldLimit {
 public:
  // Zero: it never stays awake.
  explicit YieldLimit(Duration limit) : limit_(limit) {}

  Duration limit() const { return limit_; }
  // The limit for a wait that may take any time.
  Duration now() const { return score_ >= kMost / 2 ? limit_ : Duration::zero(); }
  // Reports how long a wait took. Waits that ended while the driver still spun are not reported.
  void waited(Duration idle) { score_ = std::clamp(score_ + (idle < limit_ ? 1 : -1), 0, kMost); }

 private:
  static constexpr int kMost = 8;

  Duration limit_;
  int score_ = kMost;
};

}  // namespace farandole::conductor
