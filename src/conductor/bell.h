// Bell: how this rank's driver sleeps and is woken, and how it learns that the rank cannot go on.
//
// Only one thread sleeps at a time:
//
//     seen = bell.announceSleep();
//     if (nothingToDo()) bell.sleep(seen, deadline);
//     bell.awake();
//
// A ring after announceSleep() ends the sleep, or keeps it from beginning.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "base/status.h"

namespace farandole::conductor {

class Bell {
 public:
  virtual ~Bell() = default;

  // Wakes the driver if it sleeps. Any thread may call it.
  virtual void ring() = 0;
  virtual std::uint32_t announceSleep() = 0;
  // Sleeps until the bell is rung, the deadline has passed or a signal has arrived. Returns false
  // only for a signal.
  virtual bool sleep(std::uint32_t seen, Deadline deadline) = 0;
  virtual void awake() = 0;

  // This rank cannot go on: keeps the first status and wakes the driver. Any thread may call it.
  virtual void fail(Status status) = 0;
  virtual bool failed() const = 0;
  virtual Status failure() const = 0;  // only when failed()
};

}  // namespace farandole::conductor
