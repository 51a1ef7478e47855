// Work: the type in which a reduction passes through the stages, and the way into it and out of it.
//
// A reduction in stages must not round or wrap between them where the shared-memory engine, which
// has all sources at once, would not: 16-bit floating point becomes float32, scaled integers become
// int64. Everything else, and what stays exact anyway (minimum, maximum), keeps its type.
#pragma once

#include <cstdint>

#include "base/reduce.h"
#include "base/types.h"

namespace farandole::collective::hierarchy {

struct Work {
  // members: of the whole set, by which an average divides.
  Work(DType type, ReduceOp operation, const Scale& scale, int members);

  DType outside;  // the user's
  DType inside;   // the type in the stages
  ReduceOp op;    // never kAverage
  Scale before;   // the scale of the first stage
  Scale after;    // the scale of the last result
  bool converts() const { return outside != inside; }

  // Brings count elements from the user's type into the type of the stages (no scaling yet).
  void enter(void* to, const void* from, std::int64_t count) const;
  // The last step, in place: scales count elements and stores them in the user's type.
  void leave(void* elements, std::int64_t count) const;

 private:
  void narrow(void* to, const void* from, std::int64_t count) const;
};

}  // namespace farandole::collective::hierarchy
