// Large reductions: every member owns a slice of the array. Inputs go straight to the owner, which
// reduces them and sends the result to those who want it. All in chunks, so that receiving,
// reducing and sending overlap, and both directions of every connection are busy at once.
//
// As in R. Rabenseifner, "Optimization of Collective Reduction Operations", ICCS 2004, a reduce-
// scatter is followed by an allgather, and as many bytes travel as around the ring of P. Patarasuk
// and X. Yuan, "Bandwidth Optimal All-reduce Algorithms for Clusters of Workstations", Journal of
// Parallel and Distributed Computing 69(2), 2009. Both pass on partial sums, so that the order of
// adding differs from slice to slice; here only inputs and results travel, and it is that of ranks.
#pragma once

#include <vector>

#include "collective/link/elements.h"

namespace farandole::collective::link {

struct SliceLayout {
  std::vector<std::int64_t> cuts;  // member i owns the elements from cuts[i] to cuts[i + 1]
  std::size_t chunkBytes = 0;
  // Who wants the results: everybody, a root, or (kOwner) each owner that of its own slice.
  static constexpr int kEverybody = -1;
  static constexpr int kOwner = -2;
  int reader = kEverybody;
  // kOwner: the own result is put there at the end, from `aside`, which is the elements' output
  // meanwhile: its place is where inputs are still sent from.
  void* target = nullptr;
  std::vector<std::byte> aside;
};

OperationPtr makeSlices(Context& context, Elements elements, SliceLayout layout);

// About equal slices of the whole array.
std::vector<std::int64_t> evenCuts(const Segments& segments, int members);

}  // namespace farandole::collective::link
