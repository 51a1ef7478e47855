#include "collective/hierarchy/buffers.h"

#include <algorithm>
#include <bit>

#include "base/rounding.h"

namespace farandole::collective::hierarchy {
namespace {

constexpr std::size_t kSmallest = std::size_t{64} << 10;
constexpr std::size_t kStep = std::size_t{1} << 20;

// Doubled while small, then by megabytes: seldom replaced, little wasted.
std::size_t roomFor(std::size_t bytes) {
  if (bytes <= kStep) return std::bit_ceil(std::max(bytes, kSmallest));
  return roundUp(bytes, kStep);
}

}  // namespace

std::byte* Buffers::get(Buffer buffer, std::size_t bytes) {
  Scratch& held = held_[static_cast<std::size_t>(buffer)];
  if (held && bytes <= held.bytes()) return held.data();
  held = {};
  const std::size_t rounded = roomFor(bytes);
  if (allocate_) {
    if (Result<void*> memory = allocate_(rounded); memory.ok()) {
      held = Scratch::adopt(memory.value(), rounded, free_);
    }
  }
  // The engine inside the machine copies ordinary memory where it would read shared memory.
  if (!held) held = Scratch::allocate(rounded);
  return held.data();
}

}  // namespace farandole::collective::hierarchy
