// ControlChannel: the small channel under the conductor, one per process set: members publish
// submissions, the sequencer (member 0) reads them and appends to the log, everyone reads the log
// in order.
//
// Threads: only the driver calls it (docs/threads.md), except setWaiting and submit, which any
// thread may call, submit under the set's lock.
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

  // False: no room now; try again after the sequencer has read. Wakes the sequencer.
  virtual bool submit(std::span<const std::byte> record) = 0;
  // The next log entry for this member. kCorrupt and kTooMuch, here and below: nothing more comes.
  virtual RingRead nextEntry(std::vector<std::byte>& entry) = 0;
  // How much of the log this member has read.
  virtual std::uint64_t position() const = 0;

  // The sequencer's side.
  virtual RingRead nextSubmission(int member, std::vector<std::byte>& record) = 0;
  // False: a member is far behind; try again. Wakes the members.
  virtual bool append(std::span<const std::byte> entry) = 0;

  // Some thread of this member waits (count of waiting threads changes by delta), so ready work
  // should not be delayed.
  virtual void setWaiting(int delta) = 0;
  virtual bool anyoneWaits() const = 0;

  // This member does no more: it has executed the log up to that position.
  virtual void leave(std::uint64_t executed) = 0;
  // Set if that member has left: up to where it has executed the log. What is said first stays;
  // what cannot be true is as if it had not been said.
  virtual std::optional<std::uint64_t> leftAt(int member) const = 0;
};

}  // namespace farandole::control
