// The operations of the link engine, which its communicator makes.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "collective/link/choose.h"
#include "collective/link/elements.h"
#include "collective/link/operation.h"

namespace farandole::collective::link {

// Operations on little data: everybody's block reaches everybody (gossip.h), and everybody does the
// rest by itself.

// algorithm: kExchange or kBruck.
OperationPtr makeSmallAllreduce(Context& context, Elements elements, Algorithm algorithm);
OperationPtr makeSmallAllgather(Context& context, const void* in, void* out,
                                std::span<const std::size_t> bytes, Algorithm algorithm);
OperationPtr makeBarrier(Context& context, Algorithm algorithm);

// Large reductions: every member owns a slice of the array. Inputs go straight to the owner, which
// reduces them and sends the result to those who want it. All in chunks, so that receiving,
// reducing and sending overlap, and both directions of every connection are busy at once.
//
// As in R. Rabenseifner, "Optimization of Collective Reduction Operations", ICCS 2004, a reduce-
// scatter is followed by an allgather, and as many bytes travel as around the ring of P. Patarasuk
// and X. Yuan, "Bandwidth Optimal All-reduce Algorithms for Clusters of Workstations", Journal of
// Parallel and Distributed Computing 69(2), 2009. Both pass on partial sums, so that the order of
// adding differs from slice to slice; here only inputs and results travel, and it is that of ranks.
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

// Data that is moved and not changed: parts that go straight to where they belong (alltoall,
// allgather, gather, scatter), and broadcasts along a tree or a chain.
struct Transfer {
  int member = 0;  // the other one
  std::byte* memory = nullptr;
  std::size_t bytes = 0;
};

struct MoveLayout {
  std::vector<Transfer> outgoing;  // at most one per member; memory is only read
  std::vector<Transfer> incoming;  // at most one per member
  // This member's own part.
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  std::size_t bytes = 0;
  // Memory that must live as long as the messages.
  std::shared_ptr<void> keep;
};
OperationPtr makeMove(Context& context, MoveLayout layout);

// algorithm: kTree or kChain. Elements of one byte.
OperationPtr makeBroadcast(Context& context, Segments segments, int root, Algorithm algorithm);

// Adasum (collective/adasum.h): everybody's vectors reach everybody, tensor by tensor or several
// small ones together, and everybody computes the whole tournament.
OperationPtr makeAdasum(Context& context, std::span<const Piece> pieces, DType dtype,
                        const Scale& scale);

}  // namespace farandole::collective::link
