// Stopwatch: how long an operation took, without the time that others came late: what was spent
// idle before everybody's first sign was seen. Costs nothing when not running.
#pragma once

#include "base/clock.h"

namespace farandole::collective::shm {

class Stopwatch {
 public:
  explicit Stopwatch(bool running) : running_(running) {}

  void begin() {
    if (running_) begin_ = nowNanoseconds();
  }
  // Around each call that may find nothing to do, until everybody has arrived.
  void enter() {
    if (waiting()) entered_ = nowNanoseconds();
  }
  void leave(bool didSomething) {
    if (!waiting()) return;
    if (idleSince_ != 0 && !didSomething) return;
    if (idleSince_ != 0) idle_ += entered_ - idleSince_;
    idleSince_ = nowNanoseconds();
  }
  void everybodyArrived() {
    if (!waiting()) return;
    if (idleSince_ != 0) idle_ += entered_ - idleSince_;
    arrived_ = true;
  }
  std::int64_t elapsed() const { return running_ ? nowNanoseconds() - begin_ - idle_ : 0; }

 private:
  bool waiting() const { return running_ && !arrived_ && begin_ != 0; }
  const bool running_;
  bool arrived_ = false;
  std::int64_t begin_ = 0;
  std::int64_t entered_ = 0;
  std::int64_t idleSince_ = 0;
  std::int64_t idle_ = 0;
};

}  // namespace farandole::collective::shm
