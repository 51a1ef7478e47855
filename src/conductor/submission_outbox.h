// SubmissionOutbox: what this member sends to the sequencer, in order. What finds no room in the
// control channel waits here.
//
// Called under the set's lock, except waits(), which any thread may call.
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
  // The channel outlives this object.
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
  // Sends as much as there is room for.
  void flush() {
    while (!waiting_.empty() && control_.submit(waiting_.front())) waiting_.pop_front();
    if (waiting_.empty()) waits_.store(false, std::memory_order_relaxed);
  }
  // With this, a driver that has nothing to do takes no lock to find out.
  bool waits() const { return waits_.load(std::memory_order_acquire); }
  // Drops what has not been sent.
  void clear() { waiting_.clear(); }

 private:
  control::ControlChannel& control_;
  ByteWriter record_;  // the submission that is being sent
  std::deque<std::vector<std::byte>> waiting_;
  std::atomic<bool> waits_{false};
};

}  // namespace farandole::conductor
