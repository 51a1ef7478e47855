#include "collective/hierarchy/scratch.h"

#include <algorithm>
#include <bit>
#include <cstdlib>

namespace farandole {
namespace {

constexpr std::size_t kSmallest = std::size_t{64} << 10;
constexpr std::size_t kStep = std::size_t{1} << 20;

// Doubled while small, then by megabytes: seldom replaced, little wasted.
std::size_t roundUp(std::size_t bytes) {
  if (bytes <= kStep) return std::bit_ceil(std::max(bytes, kSmallest));
  return (bytes + kStep - 1) / kStep * kStep;
}

}  // namespace

Scratch::~Scratch() {
  for (Held& held : held_) release(held);
}

std::byte* Scratch::get(Buffer buffer, std::size_t bytes) {
  Held& held = held_[static_cast<std::size_t>(buffer)];
  if (held.memory == nullptr || bytes > held.bytes) {
    release(held);
    const std::size_t rounded = roundUp(bytes);
    if (allocate_) {
      if (Result<void*> memory = allocate_(rounded); memory.ok()) {
        held = {memory.value(), rounded, true};
      }
    }
    // The engine inside the machine copies ordinary memory where it would read shared memory.
    if (held.memory == nullptr) held = {std::aligned_alloc(64, rounded), rounded, false};
    if (held.memory == nullptr) held = {};
  }
  return static_cast<std::byte*>(held.memory);
}

void Scratch::release(Held& held) {
  if (held.memory != nullptr && held.shared && free_) free_(held.memory);
  if (held.memory != nullptr && !held.shared) std::free(held.memory);
  held = {};
}

}  // namespace farandole
