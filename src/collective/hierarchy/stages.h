// The operations that pass through the stages of a hierarchy; each is described where it is made.
#pragma once

#include <cstdint>
#include <span>

#include "collective/hierarchy/convert.h"
#include "collective/hierarchy/pipeline.h"

namespace farandole::collective::hierarchy {

// root: the member that receives the result, or kAnyMember: everybody.
OperationPtr makeSlicedReduction(HierarchyContext& context, std::span<const Piece> pieces,
                                 const Work& work, int root);
OperationPtr makeSlicedReduceScatter(HierarchyContext& context, const void* in, void* out,
                                     std::span<const std::int64_t> counts, const Work& work);
OperationPtr makeSlicedAllgather(HierarchyContext& context, const void* in, void* out,
                                 std::span<const std::int64_t> counts, DType dtype);
OperationPtr makeSlicedBroadcast(HierarchyContext& context, std::span<const Piece> pieces,
                                 DType dtype, int root);
OperationPtr makeHierarchyBarrier(HierarchyContext& context);

}  // namespace farandole::collective::hierarchy
