#include "collective/mpi/chunks.h"

#include <algorithm>

namespace farandole::collective::mpi {

std::vector<Chunk> cut(std::span<const Piece> pieces, std::size_t elementBytes) {
  const auto elements = [&](std::size_t bytes) {
    return static_cast<std::int64_t>(bytes / elementBytes);
  };
  const bool single = pieces.size() == 1;
  std::vector<Chunk> chunks;
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    std::int64_t left = pieces[i].count;
    std::int64_t offset = 0;
    const bool direct = single || left >= elements(kDirectFrom);
    while (left > 0) {
      std::int64_t count = std::min(left, elements(kDirectBytes));
      if (direct) {
        chunks.push_back({begin, count, static_cast<int>(i), offset});
      } else {
        const bool joins = !chunks.empty() && chunks.back().piece < 0 &&
                           chunks.back().count < elements(kPackedBytes);
        if (!joins) chunks.push_back({begin, 0, -1, 0});
        count = std::min(left, elements(kPackedBytes) - chunks.back().count);
        chunks.back().count += count;
      }
      begin += count;
      offset += count;
      left -= count;
    }
  }
  return chunks;
}

}  // namespace farandole::collective::mpi
