// Slices: a run of elements, in pieces of memory or not, cut into chunks and every chunk into one
// slice per carrier; and the last stage of what comes to the carriers slice by slice: everybody
// takes all slices of a chunk and puts them into the pieces' outputs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collective/hierarchy/pipeline.h"
#include "collective/segments.h"

namespace farandole::collective::hierarchy {

class Slices {
 public:
  Slices(const Segments& segments, const Cut& cut) : segments_(segments), cut_(cut) {}

  std::int64_t begin(std::int64_t chunk) const {
    return splitAt(segments_.total(), chunk, cut_.chunks);
  }
  std::int64_t count(std::int64_t chunk) const { return begin(chunk + 1) - begin(chunk); }
  // Where a slice begins within its chunk.
  std::int64_t begin(std::int64_t chunk, int slice) const {
    return splitAt(count(chunk), slice, cut_.slices);
  }
  std::int64_t count(std::int64_t chunk, int slice) const {
    return slice < cut_.slices ? begin(chunk, slice + 1) - begin(chunk, slice) : 0;
  }
  std::int64_t longestChunk() const { return count(0); }
  std::int64_t longestSlice() const { return count(0, 0); }
  // What each of the local members has of a chunk.
  std::vector<std::int64_t> counts(std::int64_t chunk, int locals) const;

  // The input or output of a chunk if it is in one piece; nullptr otherwise.
  const std::byte* in(std::int64_t chunk) const;
  std::byte* out(std::int64_t chunk) const;
  // The outputs of a slice as pieces whose inputs are the outputs themselves or, if `from` is not
  // null, consecutive there.
  std::vector<Piece> outputs(std::int64_t chunk, int slice, const std::byte* from) const;
  // The slice in consecutive memory, as pieces of the counts that outputs() has on every member.
  std::vector<Piece> consecutive(std::int64_t chunk, int slice, std::byte* memory) const;

  // Every member of the machine gets all slices of the chunk; `mine` is this member's. With several
  // slices and a chunk in several pieces, they go to `placed` first: then place() afterwards.
  OperationPtr spread(HierarchyContext& context, std::int64_t chunk, const std::byte* mine,
                      std::byte* placed, DType dtype) const;
  bool needsPlacing(std::int64_t chunk) const { return cut_.slices > 1 && out(chunk) == nullptr; }
  bool mayNeedPlacing() const { return cut_.slices > 1 && segments_.pieces().size() > 1; }
  void place(std::int64_t chunk, const std::byte* placed) const;

 private:
  const Segments& segments_;
  const Cut cut_;
};

}  // namespace farandole::collective::hierarchy
