#include "collective/hierarchy/slices.h"

namespace farandole::collective::hierarchy {
namespace {

struct OnePiece {
  std::size_t piece = 0;
  std::int64_t offset = 0;
  bool found = false;
};

OnePiece onePiece(const Segments& segments, std::int64_t begin, std::int64_t count) {
  OnePiece result;
  segments.forEach(begin, begin + count,
                   [&](std::size_t piece, std::int64_t offset, std::int64_t run, std::int64_t) {
                     if (run == count) result = {piece, offset, true};
                   });
  return result;
}

}  // namespace

std::vector<std::int64_t> Slices::counts(std::int64_t chunk, int locals) const {
  std::vector<std::int64_t> result;
  result.reserve(static_cast<std::size_t>(locals));
  for (int slice = 0; slice < locals; ++slice) result.push_back(count(chunk, slice));
  return result;
}

const std::byte* Slices::in(std::int64_t chunk) const {
  const OnePiece where = onePiece(segments_, begin(chunk), count(chunk));
  return where.found ? segments_.in(where.piece, where.offset) : nullptr;
}

std::byte* Slices::out(std::int64_t chunk) const {
  const OnePiece where = onePiece(segments_, begin(chunk), count(chunk));
  return where.found ? segments_.out(where.piece, where.offset) : nullptr;
}

std::vector<Piece> Slices::outputs(std::int64_t chunk, int slice, const std::byte* from) const {
  std::vector<Piece> result;
  const std::int64_t start = begin(chunk) + begin(chunk, slice);
  segments_.forEach(
      start, start + count(chunk, slice),
      [&](std::size_t piece, std::int64_t offset, std::int64_t run, std::int64_t done) {
        std::byte* const out = segments_.out(piece, offset);
        const std::byte* const in =
            from == nullptr ? out
                            : from + static_cast<std::size_t>(done) * segments_.elementBytes();
        result.push_back({in, out, run});
      });
  return result;
}

std::vector<Piece> Slices::consecutive(std::int64_t chunk, int slice, std::byte* memory) const {
  std::vector<Piece> result = outputs(chunk, slice, memory);
  for (Piece& piece : result) piece.out = const_cast<void*>(piece.in);
  return result;
}

OperationPtr Slices::spread(HierarchyContext& context, std::int64_t chunk, const std::byte* mine,
                            std::byte* placed, DType dtype) const {
  if (count(chunk) == 0) return nullptr;
  if (cut_.slices == 1) {
    const bool carrier = context.machines.local() == 0;
    return context.local->broadcast(outputs(chunk, 0, carrier ? mine : nullptr), dtype, 0);
  }
  std::byte* const target = needsPlacing(chunk) ? placed : out(chunk);
  return context.local->allgather(mine, target, counts(chunk, context.local->size()), dtype);
}

void Slices::place(std::int64_t chunk, const std::byte* placed) const {
  segments_.scatter(begin(chunk), begin(chunk + 1), placed, Store::kCached);
}

}  // namespace farandole::collective::hierarchy
