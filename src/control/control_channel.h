// ControlChannel: the channel under the conductor, one for each process set. Members publish
// submissions, the sequencer (on member 0) reads them and appends to the log, and every member
// reads the log in order.
//
// Threads. Only the driver calls it (docs/threads.md). Exceptions: any thread may call setWaiting,
// and submit under the set's lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "control/byte_ring.h"

namespace farandole::control {

class ControlChannel {
 public:
  virtual ~ControlChannel() = default;

  // Wakes the sequencer. False if there is no room now: try again after the sequencer has read.
  virtual bool submit(std::span<const std::byte> record) = 0;
  // Reads the next log entry for this member. After kCorrupt and kTooMuch, here and below, nothing
  // more comes.
  virtual RingRead nextEntry(std::vector<std::byte>& entry) = 0;
  // How much of the log this member has read.
  virtual std::uint64_t position() const = 0;

  // These two are for the sequencer.
  virtual RingRead nextSubmission(int member, std::vector<std::byte>& record) = 0;
  // Wakes the members. False if a member is far behind: try again.
  virtual bool append(std::span<const std::byte> entry) = 0;

  // The number of this member's threads that wait changes by delta. While any thread waits, ready
  // work should not be delayed.
  virtual void setWaiting(int delta) = 0;
  virtual bool anyoneWaits() const = 0;

  // This member does no more; it has executed the log up to that position.
  virtual void leave(std::uint64_t executed) = 0;
  // Set if that member has left: the position up to which it has executed the log. The first one
  // stays, and an impossible one is ignored.
  virtual std::optional<std::uint64_t> leftAt(int member) const = 0;
};

}  // namespace farandole::control
