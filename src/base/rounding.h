// Multiples of pages, cache lines and the like.
#pragma once

#include <cstddef>

namespace farandole {

// The next multiple of `unit`.
constexpr std::size_t roundUp(std::size_t value, std::size_t unit) {
  return (value + unit - 1) / unit * unit;
}

// The multiple of `unit` at or below it.
constexpr std::size_t roundDown(std::size_t value, std::size_t unit) { return value / unit * unit; }

}  // namespace farandole
