// Reductions in MPI's words, and scaled copies.
#pragma once

#include <cstdint>

#include "collective/mpi/operation.h"

namespace farandole::collective::mpi {

struct NativeReduction {
  MPI_Datatype type;
  MPI_Op op;
  std::int64_t perElement;  // MPI elements in one of ours
};

// The names that MPI has for a reduction; only for what mpiComputes.
NativeReduction nativeReduction(const Reduction& reduction);

// to = from * scale; nothing if that changes nothing.
void scaledCopy(void* to, const void* from, std::int64_t count, const Reduction& reduction,
                const Scale& scale);

inline Scale before(const Scale& scale) { return {scale.pre, 1.0, 1}; }
inline Scale after(const Scale& scale) { return {1.0, scale.post, scale.divisor}; }

}  // namespace farandole::collective::mpi
