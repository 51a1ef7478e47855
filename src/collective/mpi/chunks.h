// Chunks: how fused pieces are cut into the arrays that MPI is given one after the other.
//
// Large pieces are used where they lie; runs of small ones are packed. The cut depends on counts
// only, so it is the same on all members.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collective/communicator.h"

namespace farandole::collective::mpi {

struct Chunk {
  std::int64_t begin = 0;  // in the concatenation of all pieces
  std::int64_t count = 0;
  int piece = -1;           // lies in this one; -1: packed
  std::int64_t offset = 0;  // in that piece
};

// From this size on a piece is used where it lies.
inline constexpr std::size_t kDirectFrom = std::size_t{256} << 10;
// A step of packing or arithmetic takes a few milliseconds at most, and MPI is busy with one chunk
// while the next is prepared.
inline constexpr std::size_t kDirectBytes = std::size_t{16} << 20;
inline constexpr std::size_t kPackedBytes = std::size_t{4} << 20;

std::vector<Chunk> cut(std::span<const Piece> pieces, std::size_t elementBytes);

}  // namespace farandole::collective::mpi
