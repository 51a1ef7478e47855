#include "collective/shm/allreduce_direct.h"

#include <algorithm>
#include <string>

namespace farandole::collective::shm {
namespace {

// Elements are reduced in blocks of about this many bytes, so that progress() can return between.
constexpr std::size_t kDirectBlock = std::size_t{512} << 10;

}  // namespace

AllreduceDirect::AllreduceDirect(Board& board, const Segments& segments, const Reduction& reduction,
                                 Store store, std::uint64_t gateStep)
    : board_(board),
      segments_(segments),
      reduction_(reduction),
      store_(store),
      gate_(gateStep),
      ins_(segments.pieces().size() * static_cast<std::size_t>(board.size())),
      outs_(ins_.size()),
      sources_(static_cast<std::size_t>(board.size())),
      destinations_(static_cast<std::size_t>(board.size())),
      at_(segments.boundary(board.me(), board.size())),
      end_(segments.boundary(board.me() + 1, board.size())) {}

GateNote AllreduceDirect::describe(Board& board, const Segments& segments) {
  GateNote note;
  note.ranges.reserve(2 * segments.pieces().size());
  for (const Piece& piece : segments.pieces()) {
    const std::size_t bytes = static_cast<std::size_t>(piece.count) * segments.elementBytes();
    const auto in = sharedRange(board, piece.in, bytes);
    if (!in) return {};
    const auto out = piece.in == piece.out ? in : sharedRange(board, piece.out, bytes);
    if (!out) return {};
    note.ranges.push_back(*in);
    note.ranges.push_back(*out);
  }
  note.shared = true;
  return note;
}

Status AllreduceDirect::take(int member, const GateNote& note) {
  const auto pieces = segments_.pieces();
  const std::string who = "member " + std::to_string(member) + " of this set ";
  if (note.ranges.size() != 2 * pieces.size()) {
    return Status(Code::kMismatch, who + "reduces " + std::to_string(note.ranges.size() / 2) +
                                       " tensors, this rank " + std::to_string(pieces.size()));
  }
  for (std::size_t piece = 0; piece < pieces.size(); ++piece) {
    const std::uint64_t bytes =
        static_cast<std::uint64_t>(pieces[piece].count) * segments_.elementBytes();
    const SharedRange& from = note.ranges[2 * piece];
    const SharedRange& to = note.ranges[2 * piece + 1];
    in(piece, member) = board_.at(member, from.offset, bytes);
    out(piece, member) = board_.at(member, to.offset, bytes);
    if (from.bytes != bytes || to.bytes != bytes || in(piece, member) == nullptr ||
        out(piece, member) == nullptr) {
      return Status(Code::kMismatch, who + "describes tensor " + std::to_string(piece) +
                                         " differently from this rank, or outside its memory");
    }
  }
  return {};
}

Advance AllreduceDirect::advance(Budget& budget) {
  Advance result = Advance::kNothing;
  const auto block = static_cast<std::int64_t>(std::max<std::size_t>(
      64,
      kDirectBlock / static_cast<std::size_t>(board_.size()) / segments_.elementBytes() / 64 * 64));
  while (at_ < end_) {
    if (budget.spent()) return Advance::kSomething;
    const std::int64_t next = std::min(end_, at_ + block);
    reduceRange(at_, next);
    budget.charge(static_cast<std::size_t>(next - at_) * segments_.elementBytes() *
                  static_cast<std::size_t>(board_.size()));
    at_ = next;
    result = Advance::kSomething;
  }
  if (!announced_) {
    // The step after the gate carries no data: it says that this member's slice is written
    // everywhere. No member returns before all slices are written and all members have read its
    // input.
    board_.contribute(gate_ + 2);
    announced_ = true;
    result = Advance::kSomething;
  }
  return board_.allContributed(gate_ + 1) ? Advance::kDone : result;
}

void AllreduceDirect::reduceRange(std::int64_t begin, std::int64_t end) {
  const FpModeGuard guard;
  segments_.forEach(
      begin, end, [&](std::size_t piece, std::int64_t offset, std::int64_t count, std::int64_t) {
        const std::size_t shift = static_cast<std::size_t>(offset) * segments_.elementBytes();
        for (int member = 0; member < board_.size(); ++member) {
          sources_[static_cast<std::size_t>(member)] = in(piece, member) + shift;
          destinations_[static_cast<std::size_t>(member)] = out(piece, member) + shift;
        }
        reduce(destinations_, sources_, count, reduction_.dtype, reduction_.op, reduction_.scale,
               store_);
      });
}

}  // namespace farandole::collective::shm
