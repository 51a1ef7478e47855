// Chunks: a range of a fused array cut into messages.
//
// Large tensors are cut by themselves and travel straight from and to their memory; neighbours that
// are small share a chunk, which is packed. All members cut alike, since the pieces' counts agree.
#pragma once

#include <cstdint>
#include <vector>

#include "collective/segments.h"

namespace farandole::collective::link {

struct Chunk {
  std::int64_t begin = 0;  // elements of the whole array
  std::int64_t end = 0;
  // The memory of a chunk that lies in one piece; null otherwise, or where the piece has none.
  const std::byte* in = nullptr;
  std::byte* out = nullptr;
  bool whole = false;  // lies in one piece

  std::int64_t count() const { return end - begin; }
};

// Chunks of at most `most` elements each; none is empty.
std::vector<Chunk> cutIntoChunks(const Segments& segments, std::int64_t begin, std::int64_t end,
                                 std::int64_t most);
std::int64_t largest(const std::vector<Chunk>& chunks);

}  // namespace farandole::collective::link
