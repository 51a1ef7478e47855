#include "collective/scratch.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace farandole::collective {
namespace {

constexpr std::size_t kLine = 64;

bool smaller(const Scratch& a, const Scratch& b) { return a.bytes() < b.bytes(); }

}  // namespace

void Scratch::Release::operator()(std::byte* memory) const {
  if (free != nullptr) {
    if (*free) (*free)(memory);
  } else {
    std::free(memory);
  }
}

Scratch Scratch::allocate(std::size_t bytes) {
  const std::size_t whole = std::max((bytes + kLine - 1) / kLine * kLine, kLine);
  Scratch scratch;
  scratch.memory_.reset(static_cast<std::byte*>(std::aligned_alloc(kLine, whole)));
  scratch.bytes_ = whole;
  return scratch;
}

Scratch Scratch::adopt(void* memory, std::size_t bytes, const Free& free) {
  Scratch scratch;
  scratch.memory_ = {static_cast<std::byte*>(memory), Release{&free}};
  scratch.bytes_ = bytes;
  return scratch;
}

Scratch ScratchPool::take(std::size_t bytes) {
  const auto found =
      std::ranges::find_if(kept_, [&](const Scratch& scratch) { return scratch.bytes() >= bytes; });
  if (found != kept_.end()) {
    Scratch scratch = std::move(*found);
    kept_.erase(found);
    return scratch;
  }
  // The new one will take the place of one that was too small.
  if (!kept_.empty() && bytes <= kLargest) kept_.erase(std::ranges::min_element(kept_, smaller));
  return Scratch::allocate(bytes);
}

void ScratchPool::give(Scratch scratch) {
  if (!scratch || scratch.bytes() > kLargest) return;
  if (kept_.size() < most_) {
    kept_.push_back(std::move(scratch));
    return;
  }
  const auto smallest = std::ranges::min_element(kept_, smaller);
  if (smallest != kept_.end() && smaller(*smallest, scratch)) *smallest = std::move(scratch);
}

}  // namespace farandole::collective
