// RankStates: what is known of the other ranks of the job: who has left and why (leave_mark.h), whose
// process has ended, who is stopped. Any thread.
#pragma once

#include <cstdint>

namespace farandole::conductor {

inline constexpr std::uint32_t kStillHere = 0;
inline constexpr std::uint32_t kLeftInGoodOrder = 1;

// It gave up because that rank was lost; -1: for a reason of its own.
constexpr std::uint32_t gaveUpBecauseOf(std::int32_t rank) {
  return static_cast<std::uint32_t>(rank < 0 ? -1 : rank) + 3;
}
constexpr bool hasGivenUp(std::uint32_t mark) { return mark > kLeftInGoodOrder; }
constexpr std::int32_t culpritOf(std::uint32_t mark) { return static_cast<std::int32_t>(mark - 3); }

static_assert(hasGivenUp(gaveUpBecauseOf(-1)) && culpritOf(gaveUpBecauseOf(-1)) == -1);
static_assert(hasGivenUp(gaveUpBecauseOf(0)) && culpritOf(gaveUpBecauseOf(7)) == 7);

class RankStates {
 public:
  virtual ~RankStates() = default;

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
