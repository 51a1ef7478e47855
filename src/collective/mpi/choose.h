// What MPI computes itself, which way an allreduce takes, and how an array is cut. These are pure
// decisions, without MPI's headers; all members come to the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "collective/operation.h"

namespace farandole::collective::mpi {

// Whether MPI's arithmetic is ours. Not of float16 and bfloat16 (which it lacks), scaled integers
// (accumulated in 64 bits), bool, the minimum and maximum of floats (NaN), and products of complex
// numbers.
bool mpiComputes(const Reduction& reduction);

// Whether a set of this size leaves to MPI what it computes. nativeFrom 0: never.
bool nativeSize(int members, int nativeFrom);

enum class Algorithm {
  kLocal,     // one member: nothing travels
  kNative,    // MPI's own
  kGathered,  // everybody gets everything and reduces it
  kExchange,  // everybody reduces one part and hands it to all
};
// bytes: of one member's array.
Algorithm chooseAllreduce(const Reduction& reduction, std::size_t bytes, int members,
                          int nativeFrom);

// Chunks: how fused pieces are cut into the arrays that MPI is given one after the other. Large
// pieces are used where they lie; runs of small ones are packed. The cut depends on counts only, so
// it is the same on all members.
struct Chunk {
  std::int64_t begin = 0;  // its start in the concatenation of all pieces
  std::int64_t count = 0;
  int piece = -1;           // the piece it lies in; -1: it is packed
  std::int64_t offset = 0;  // its start in that piece
};

// From this size on a piece is used where it lies.
inline constexpr std::size_t kDirectFrom = std::size_t{256} << 10;
// A step of packing or arithmetic takes a few milliseconds at most, and MPI is busy with one chunk
// while the next is prepared.
inline constexpr std::size_t kDirectBytes = std::size_t{16} << 20;
inline constexpr std::size_t kPackedBytes = std::size_t{4} << 20;

std::vector<Chunk> cut(std::span<const Piece> pieces, std::size_t elementBytes);

}  // namespace farandole::collective::mpi
