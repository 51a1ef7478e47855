// Buffers: the intermediate memory of one communicator, kept from operation to operation.
//
// A buffer grows when an operation asks for more than any before; chunks bound what is ever asked
// for. Only one operation at a time uses it (collectives of a communicator follow each other), and
// asking for a buffer forgets its former content.
#pragma once

#include <array>
#include <cstddef>
#include <functional>

#include "base/status.h"
#include "collective/scratch.h"

namespace farandole::collective::hierarchy {

enum class Buffer {
  kPacked,   // a chunk's input, in the order and type in which it is reduced
  kSlices,   // what goes between the machines, a ring
  kAnswers,  // what comes from there where it cannot take its place, a ring
  kPlaced,   // a chunk's output before its runs are put where they belong
};
inline constexpr std::size_t kBuffers = 4;

class Buffers {
 public:
  Buffers(std::function<Result<void*>(std::size_t)> allocate, Scratch::Free free)
      : allocate_(std::move(allocate)), free_(std::move(free)) {}
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;

  // At least `bytes`, 64-byte aligned; nullptr when the machine has no memory left.
  std::byte* get(Buffer buffer, std::size_t bytes);

 private:
  const std::function<Result<void*>(std::size_t)> allocate_;
  const Scratch::Free free_;
  std::array<Scratch, kBuffers> held_;
};

}  // namespace farandole::collective::hierarchy
