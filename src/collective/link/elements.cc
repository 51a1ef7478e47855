#include "collective/link/elements.h"

#include <algorithm>
#include <array>

namespace farandole::collective::link {

Elements::Elements(Segments segments, const Reduction& reduction, WireFormat format)
    : segments_(std::move(segments)),
      reduction_(reduction),
      wire_(wireType(format, reduction.dtype)),
      wireBytes_(sizeOf(wire_)) {}

void Elements::pack(std::int64_t begin, std::int64_t end, std::byte* to) const {
  if (native()) return segments_.gather(begin, end, to, Store::kCached);
  auto* halves = reinterpret_cast<std::uint16_t*>(to);
  segments_.forEach(
      begin, end,
      [&](std::size_t piece, std::int64_t offset, std::int64_t count, std::int64_t done) {
        const auto* from = reinterpret_cast<const float*>(segments_.in(piece, offset));
        if (reduction_.scale.pre == 1.0) return narrow(halves + done, from, count, wire_);
        // Scaled before it is rounded: that is what keeps it within the range of 16 bits.
        std::array<float, 1024> scaled;
        for (std::int64_t at = 0; at < count; at += 1024) {
          const std::int64_t part = std::min<std::int64_t>(1024, count - at);
          const void* const source = from + at;
          void* const place = scaled.data();
          reduce(std::span(&place, 1), std::span(&source, 1), part, DType::kFloat32, ReduceOp::kSum,
                 Scale{reduction_.scale.pre, 1.0, 1}, Store::kCached);
          narrow(halves + done + at, scaled.data(), part, wire_);
        }
      });
}

void Elements::unpack(std::int64_t begin, std::int64_t end, const std::byte* from) const {
  if (native()) return segments_.scatter(begin, end, from, Store::kCached);
  const auto* halves = reinterpret_cast<const std::uint16_t*>(from);
  segments_.forEach(
      begin, end,
      [&](std::size_t piece, std::int64_t offset, std::int64_t count, std::int64_t done) {
        widen(reinterpret_cast<float*>(segments_.out(piece, offset)), halves + done, count, wire_);
      });
}

void Elements::reduceInto(std::byte* result, std::span<const void* const> sources,
                          std::int64_t count) const {
  Scale scale = reduction_.scale;
  if (!native()) scale.pre = 1.0;  // applied in pack()
  void* const destination = result;
  reduce(std::span(&destination, 1), sources, count, wire_, reduction_.op, scale, Store::kCached);
}

}  // namespace farandole::collective::link
