// What a rank leaves in the neighbourhood's header (NeighbourhoodHeader::leaves) when it does no
// more, so that the others blame whoever is at fault and not whoever noticed first.
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

}  // namespace farandole::conductor
