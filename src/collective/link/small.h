// Operations on little data: everybody's block reaches everybody (gossip.h), and everybody does the
// rest by itself.
#pragma once

#include <span>

#include "collective/link/choose.h"
#include "collective/link/elements.h"

namespace farandole::collective::link {

// algorithm: kExchange or kBruck.
OperationPtr makeSmallAllreduce(Context& context, Elements elements, Algorithm algorithm);
OperationPtr makeSmallAllgather(Context& context, const void* in, void* out,
                                std::span<const std::size_t> bytes, Algorithm algorithm);
OperationPtr makeBarrier(Context& context, Algorithm algorithm);

}  // namespace farandole::collective::link
