// Fates: what is known of the other ranks of the job: who has left and why (leave_mark.h), whose
// process has ended, who is stopped. Any thread.
#pragma once

#include <cstdint>

namespace farandole::conductor {

class Fates {
 public:
  virtual ~Fates() = default;

  // The leave mark of that rank.
  virtual std::uint32_t markOf(std::int32_t rank) const = 0;
  // By and for this rank. The first one stays.
  virtual void leave(std::uint32_t mark) = 0;
  // Whether that rank's process has ended, on this machine.
  virtual bool gone(std::int32_t rank) const = 0;
  // Of how many ranks that is true.
  virtual std::uint32_t ends() const = 0;
  // Whether that rank's process is known to be stopped.
  virtual bool stopped(std::int32_t rank) const = 0;
};

}  // namespace farandole::conductor
