// SubmissionOutbox: what this member tells the sequencer, in its order. What finds no room in the
// control channel waits here.
//
// Called under the set's lock, except waits(), which any thread may ask.
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <vector>

#include "base/bytes.h"
#include "control/control_channel.h"
#include "control/messages.h"

namespace farandole::conductor {

class SubmissionOutbox {
 public:
  // The channel outlives it.
  explicit SubmissionOutbox(control::ControlChannel& control) : control_(control) {}

  void send(const control::Submission& submission) {
    control::encode(submission, record_);
    const auto record = record_.bytes();
    if (!waiting_.empty()) flush();
    if (!waiting_.empty() || !control_.submit(record)) {
      waiting_.emplace_back(record.begin(), record.end());
      waits_.store(true, std::memory_order_release);
    }
  }
  // Sends what there is room for by now.
  void flush() {
    while (!waiting_.empty() && control_.submit(waiting_.front())) waiting_.pop_front();
    if (waiting_.empty()) waits_.store(false, std::memory_order_relaxed);
  }
  // So that a driver that finds nothing to do takes no lock to find out.
  bool waits() const { return waits_.load(std::memory_order_acquire); }
  // Nothing of it is to be said any more.
  void clear() { waiting_.clear(); }

 private:
  control::ControlChannel& control_;
  ByteWriter record_;  // the memory of the one that is sent
  std::deque<std::vector<std::byte>> waiting_;
  std::atomic<bool> waits_{false};
};

}  // namespace farandole::conductor
