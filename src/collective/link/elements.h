// Elements: what a reduction does at the edge between memory and wire: the inputs of a range as
// they travel, and results as they have travelled back into memory.
#pragma once

#include <cstddef>

#include "collective/link/chunks.h"
#include "collective/link/operation.h"
#include "collective/link/wire_format.h"

namespace farandole::collective::link {

class Elements {
 public:
  Elements(Segments segments, const Reduction& reduction, WireFormat format);

  const Segments& segments() const { return segments_; }
  std::size_t wireBytes() const { return wireBytes_; }  // of one element
  std::size_t wireBytes(const Chunk& chunk) const {
    return static_cast<std::size_t>(chunk.count()) * wireBytes_;
  }
  // Elements travel as they lie in memory.
  bool native() const { return wire_ == reduction_.dtype; }
  // The chunk can be sent from, or received into, the caller's memory.
  bool inPlace(const Chunk& chunk) const { return native() && chunk.in != nullptr; }
  bool outPlace(const Chunk& chunk) const { return native() && chunk.out != nullptr; }

  // The inputs of [begin, end) as they travel, to memory of as many wire elements.
  void pack(std::int64_t begin, std::int64_t end, std::byte* to) const;
  // Results as they travel, to the outputs of [begin, end).
  void unpack(std::int64_t begin, std::int64_t end, const std::byte* from) const;
  // Everybody's elements, as they travel, in the order of the members.
  void reduceInto(std::byte* result, std::span<const void* const> sources,
                  std::int64_t count) const;

 private:
  const Segments segments_;
  const Reduction reduction_;
  const DType wire_;
  const std::size_t wireBytes_;
};

}  // namespace farandole::collective::link
