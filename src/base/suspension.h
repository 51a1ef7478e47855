// Suspension: notices that this process did not run for a while: it was stopped, its container
// frozen, its job suspended, its machine asleep. It has not seen what should have happened
// meanwhile, so no other process may be blamed.
#pragma once

#include <utility>

#include "base/clock.h"

namespace farandole {

class Suspension {
 public:
  // beat: how long it takes at most between two calls while the process runs.
  explicit Suspension(Duration beat, TimePoint now = Clock::now()) : beat_(beat), last_(now) {}

  // How long it has not run since the last call; zero unless it is a beat late.
  Duration since(TimePoint now) {
    const Duration passed = now - std::exchange(last_, now);
    return passed > 2 * beat_ ? passed - beat_ : Duration::zero();
  }
  // As if since() had been called now.
  void restart(TimePoint now) { last_ = now; }

 private:
  Duration beat_;
  TimePoint last_;
};

// A deadline that leaves out the time in which this process did not run. For one waiter, which asks
// at least every beat.
class RunningDeadline {
 public:
  RunningDeadline(Deadline deadline, Duration beat) : deadline_(deadline), suspension_(beat) {}

  bool passed() { return passed(Clock::now()); }
  bool passed(TimePoint now) {
    if (deadline_.isNever()) return false;
    if (const Duration missed = suspension_.since(now); missed > Duration::zero()) {
      deadline_ = Deadline::after(missed, deadline_.at());
    }
    return now >= deadline_.at();
  }
  // The deadline with the time that has been added so far.
  Deadline get() const { return deadline_; }

 private:
  Deadline deadline_;
  Suspension suspension_;
};

}  // namespace farandole
