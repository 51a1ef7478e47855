// Segments: several pieces of memory as one array of elements, without packing them.
//
// A value; constant after construction, so any thread may read it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "collective/communicator.h"

namespace farandole::collective {

class Segments {
 public:
  Segments() = default;
  Segments(std::span<const Piece> pieces, std::size_t elementBytes);
  // One piece of bytes.
  Segments(const void* in, void* out, std::size_t bytes);

  std::int64_t total() const { return total_; }
  std::size_t elementBytes() const { return elementBytes_; }
  std::size_t bytes() const { return static_cast<std::size_t>(total_) * elementBytes_; }
  std::span<const Piece> pieces() const {
    return many_.empty() ? std::span<const Piece>(&one_, 1) : std::span<const Piece>(many_);
  }

  // Where part `index` of `parts` begins: parts are about equal, and begin at multiples of 64
  // elements of a piece, so that vector instructions find aligned memory.
  std::int64_t boundary(int index, int parts) const;

  // Calls f(piece, offset, count, done) for each run of the elements [begin, end): `count` elements
  // from `offset` of piece number `piece`, `done` elements after begin.
  template <typename F>
  void forEach(std::int64_t begin, std::int64_t end, F f) const {
    std::int64_t at = begin;
    for (std::size_t index = pieceOf(begin); at < end; ++index) {
      const std::int64_t start = starts_.empty() ? 0 : starts_[index];
      const std::int64_t count = std::min(end, start + pieces()[index].count) - at;
      if (count > 0) f(index, at - start, count, at - begin);
      at += std::max<std::int64_t>(count, 0);
    }
  }

  const std::byte* in(std::size_t piece, std::int64_t offset) const {
    return static_cast<const std::byte*>(pieces()[piece].in) + byteOffset(offset);
  }
  std::byte* out(std::size_t piece, std::int64_t offset) const {
    return static_cast<std::byte*>(pieces()[piece].out) + byteOffset(offset);
  }

  // Copies the inputs of [begin, end) to memory, or memory to their outputs.
  void gather(std::int64_t begin, std::int64_t end, std::byte* to, Store store) const;
  void scatter(std::int64_t begin, std::int64_t end, const std::byte* from, Store store) const;

 private:
  std::size_t byteOffset(std::int64_t offset) const {
    return static_cast<std::size_t>(offset) * elementBytes_;
  }
  // The last piece that begins at or before the element.
  std::size_t pieceOf(std::int64_t element) const;

  Piece one_;                         // the frequent case needs no allocation
  std::vector<Piece> many_;           // or more than one
  std::vector<std::int64_t> starts_;  // where each piece of many_ starts
  std::int64_t total_ = 0;
  std::size_t elementBytes_ = 1;
};

// Whether two ranges of memory have a byte in common.
bool overlap(const void* a, std::size_t aBytes, const void* b, std::size_t bBytes);

}  // namespace farandole::collective
