// Which reductions MPI computes itself, and scaled copies.
#pragma once

#include <cstdint>
#include <optional>

#include "collective/mpi/operation.h"

namespace farandole::mpi {

struct NativeReduction {
  MPI_Datatype type;
  MPI_Op op;
  std::int64_t perElement;  // MPI elements in one of ours
};

// None where MPI's arithmetic is not ours: float16 and bfloat16 (which it lacks), scaled integers
// (accumulated in 64 bits), bool, and the minimum and maximum of floats (NaN).
std::optional<NativeReduction> nativeReduction(const Reduction& reduction);

// Whether a set of this size leaves them to MPI.
inline bool nativeSize(const MpiContext& context) {
  return context.size > 1 && context.nativeFrom > 0 && context.size >= context.nativeFrom;
}

// to = from * scale; nothing if that changes nothing.
void scaledCopy(void* to, const void* from, std::int64_t count, const Reduction& reduction,
                const Scale& scale);

inline Scale before(const Scale& scale) { return {scale.pre, 1.0, 1}; }
inline Scale after(const Scale& scale) { return {1.0, scale.post, scale.divisor}; }

}  // namespace farandole::mpi
