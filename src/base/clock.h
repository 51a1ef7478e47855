// Monotonic time and deadlines. The clock is CLOCK_MONOTONIC: the same for all processes of a
// machine.
#pragma once

#include <time.h>

#include <chrono>
#include <cstdint>
#include <string>

namespace farandole {

using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;
using Duration = Clock::duration;

// At most a few milliseconds behind Clock::now(), and cheaper.
inline TimePoint coarseNow() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return TimePoint(std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec));
}

// A moment after which waiting must stop. Every wait in Farandole takes one.
class Deadline {
 public:
  static Deadline after(Duration duration) { return after(duration, Clock::now()); }
  static Deadline after(Duration duration, TimePoint from) {
    return duration < TimePoint::max() - from ? Deadline(from + duration) : never();
  }
  static Deadline never() { return Deadline(TimePoint::max()); }

  bool passed() const { return !isNever() && Clock::now() >= at_; }
  bool isNever() const { return at_ == TimePoint::max(); }
  TimePoint at() const { return at_; }
  // What is left, at least zero and at most limit.
  Duration left(Duration limit) const {
    if (isNever()) return limit;
    const Duration rest = at_ - Clock::now();
    return rest < Duration::zero() ? Duration::zero() : (rest < limit ? rest : limit);
  }

 private:
  explicit Deadline(TimePoint at) : at_(at) {}
  TimePoint at_;
};

inline std::int64_t nowNanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch())
      .count();
}

// "0.25 s", "30 s": how long something was waited for.
std::string describeSeconds(Duration duration);

}  // namespace farandole
