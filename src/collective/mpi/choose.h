// What MPI computes itself, and which way an allreduce takes. Without MPI's headers: pure
// decisions, to which all members come alike.
#pragma once

#include <cstddef>

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

}  // namespace farandole::collective::mpi
