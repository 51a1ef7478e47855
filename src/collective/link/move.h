// Data that is moved and not changed: parts that go straight to where they belong (alltoall,
// allgather, gather, scatter), and broadcasts along a tree or a chain.
#pragma once

#include <cstddef>
#include <vector>

#include "collective/link/choose.h"
#include "collective/link/operation.h"
#include "collective/segments.h"

namespace farandole::collective::link {

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

}  // namespace farandole::collective::link
