#include "collective/link/chunks.h"

#include <algorithm>

namespace farandole::collective::link {
namespace {

// From here on a tensor gets chunks of its own: a message costs more than copying less than this.
constexpr std::size_t kAlone = std::size_t{32} << 10;

}  // namespace

std::vector<Chunk> cutIntoChunks(const Segments& segments, std::int64_t begin, std::int64_t end,
                                 std::int64_t most) {
  std::vector<Chunk> chunks;
  most = std::max<std::int64_t>(most, 1);
  const auto add = [&](std::size_t piece, std::int64_t offset, std::int64_t from,
                       std::int64_t count) {
    const Piece& memory = segments.pieces()[piece];
    chunks.push_back({from, from + count,
                      memory.in == nullptr ? nullptr : segments.in(piece, offset),
                      memory.out == nullptr ? nullptr : segments.out(piece, offset), true});
  };
  bool open = false;  // the last chunk takes more small runs
  segments.forEach(
      begin, end,
      [&](std::size_t piece, std::int64_t offset, std::int64_t count, std::int64_t done) {
        const std::int64_t from = begin + done;
        const bool small = static_cast<std::size_t>(count) * segments.elementBytes() < kAlone;
        if (small && open && chunks.back().count() + count <= most) {
          Chunk& last = chunks.back();
          last = {last.begin, from + count, nullptr, nullptr, false};
          return;
        }
        // About equal parts, at multiples of 64 elements where there are so many.
        const std::int64_t parts = (count + most - 1) / most;
        std::int64_t even = (count + parts - 1) / parts;
        if (even > 64 && (even + 63) / 64 * 64 <= most) even = (even + 63) / 64 * 64;
        for (std::int64_t at = 0; at < count; at += even) {
          add(piece, offset + at, from + at, std::min(even, count - at));
        }
        open = small && parts == 1;
      });
  return chunks;
}

std::int64_t largest(const std::vector<Chunk>& chunks) {
  std::int64_t most = 0;
  for (const Chunk& chunk : chunks) most = std::max(most, chunk.count());
  return most;
}

}  // namespace farandole::collective::link
