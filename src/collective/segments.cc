#include "collective/segments.h"

#include <cstring>

namespace farandole::collective {

Segments::Segments(std::span<const Piece> pieces, std::size_t elementBytes)
    : elementBytes_(elementBytes) {
  if (pieces.size() == 1) {
    one_ = pieces.front();
    total_ = one_.count;
    return;
  }
  many_.assign(pieces.begin(), pieces.end());
  starts_.reserve(many_.size());
  for (const Piece& piece : many_) {
    starts_.push_back(total_);
    total_ += piece.count;
  }
}

Segments::Segments(const void* in, void* out, std::size_t bytes)
    : one_{in, out, static_cast<std::int64_t>(bytes)}, total_(one_.count) {}

std::size_t Segments::pieceOf(std::int64_t element) const {
  if (starts_.empty()) return 0;
  const auto after = std::upper_bound(starts_.begin(), starts_.end(), element);
  return after == starts_.begin() ? 0 : static_cast<std::size_t>(after - starts_.begin()) - 1;
}

std::int64_t Segments::boundary(int index, int parts) const {
  if (index <= 0) return 0;
  if (index >= parts) return total_;
  // total * index / parts without overflow.
  const std::int64_t even = total_ / parts * index + total_ % parts * index / parts;
  const std::int64_t start = starts_.empty() ? 0 : starts_[pieceOf(even)];
  return start + (even - start) / 64 * 64;
}

void Segments::gather(std::int64_t begin, std::int64_t end, std::byte* to, Store store) const {
  forEach(begin, end,
          [&](std::size_t piece, std::int64_t offset, std::int64_t count, std::int64_t done) {
            copy(to + byteOffset(done), in(piece, offset), byteOffset(count), store);
          });
}

void Segments::scatter(std::int64_t begin, std::int64_t end, const std::byte* from,
                       Store store) const {
  forEach(begin, end,
          [&](std::size_t piece, std::int64_t offset, std::int64_t count, std::int64_t done) {
            copy(out(piece, offset), from + byteOffset(done), byteOffset(count), store);
          });
}

bool overlap(const void* a, std::size_t aBytes, const void* b, std::size_t bBytes) {
  const auto from = reinterpret_cast<std::uintptr_t>(a);
  const auto to = reinterpret_cast<std::uintptr_t>(b);
  return aBytes > 0 && bBytes > 0 && from < to + bBytes && to < from + aBytes;
}

}  // namespace farandole::collective
