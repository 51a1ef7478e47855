// Bell: how this rank's driver sleeps, who wakes it, and how it hears that everything is over.
//
// Only one thread sleeps at a time:
//
//     seen = bell.announceSleep();
//     if (nothingToDo()) bell.sleep(seen, deadline);
//     bell.awake();
//
// Whatever happens after announceSleep() ends the sleep, or keeps it from beginning.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "base/status.h"

namespace farandole::conductor {

class Bell {
 public:
  virtual ~Bell() = default;

  // Wakes the driver, if it sleeps. Any thread.
  virtual void ring() = 0;
  virtual std::uint32_t announceSleep() = 0;
  // Until it is rung, the deadline, or a signal: false only for a signal.
  virtual bool sleep(std::uint32_t seen, Deadline deadline) = 0;
  virtual void awake() = 0;

  // This rank cannot go on. The first status stays; wakes the driver. Any thread.
  virtual void fail(Status status) = 0;
  virtual bool failed() const = 0;
  virtual Status failure() const = 0;  // only when failed()
};

}  // namespace farandole::conductor
