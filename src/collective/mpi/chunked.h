// ChunkedOperation: a pipeline over the chunks of fused pieces.
#pragma once

#include <span>
#include <vector>

#include "collective/mpi/arithmetic.h"
#include "collective/mpi/choose.h"
#include "collective/mpi/pipeline.h"
#include "collective/segments.h"

namespace farandole::collective::mpi {

class ChunkedOperation : public Pipeline {
 protected:
  ChunkedOperation(MpiContext& shared, std::string_view operation, std::span<const Piece> pieces,
                   std::size_t elementBytes)
      : Pipeline(shared, operation),
        segments_(pieces, elementBytes),
        chunks_(cut(pieces, elementBytes)) {}

  std::size_t steps() const final { return chunks_.size(); }
  std::size_t allBytes() const final { return segments_.bytes(); }
  const Chunk& chunk(const Step& step) const { return chunks_[step.index]; }
  const Segments& segments() const { return segments_; }
  std::size_t bytes(std::int64_t count) const {
    return static_cast<std::size_t>(count) * segments_.elementBytes();
  }
  static bool packed(const Chunk& chunk) { return chunk.piece < 0; }
  // The memory of a chunk that is not packed.
  const std::byte* in(const Chunk& chunk) const {
    return segments_.in(static_cast<std::size_t>(chunk.piece), chunk.offset);
  }
  std::byte* out(const Chunk& chunk) const {
    return segments_.out(static_cast<std::size_t>(chunk.piece), chunk.offset);
  }

  // The chunk's inputs, scaled, to memory; memory, scaled, to its outputs.
  void pack(const Chunk& chunk, std::byte* to, const Reduction& reduction, const Scale& scale);
  void unpack(const Chunk& chunk, const std::byte* from, const Reduction& reduction,
              const Scale& scale);

 private:
  const Segments segments_;
  const std::vector<Chunk> chunks_;
};

inline void ChunkedOperation::pack(const Chunk& chunk, std::byte* to, const Reduction& reduction,
                                   const Scale& scale) {
  segments_.forEach(
      chunk.begin, chunk.begin + chunk.count,
      [&](std::size_t piece, std::int64_t offset, std::int64_t count, std::int64_t done) {
        scaledCopy(to + bytes(done), segments_.in(piece, offset), count, reduction, scale);
      });
}

inline void ChunkedOperation::unpack(const Chunk& chunk, const std::byte* from,
                                     const Reduction& reduction, const Scale& scale) {
  segments_.forEach(
      chunk.begin, chunk.begin + chunk.count,
      [&](std::size_t piece, std::int64_t offset, std::int64_t count, std::int64_t done) {
        scaledCopy(segments_.out(piece, offset), from + bytes(done), count, reduction, scale);
      });
}

}  // namespace farandole::collective::mpi
