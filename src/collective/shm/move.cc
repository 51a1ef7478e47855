#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "collective/shm/operations.h"

namespace farandole::collective::shm {
namespace {

// Below this a copy through the slots costs less than the two flags of a direct one.
constexpr std::uint64_t kMoveDirectFrom = 32 << 10;
constexpr std::size_t kMoveBlock = std::size_t{1} << 20;

class Move final : public ShmOperation {
 public:
  Move(ShmContext& shared, MoveLayout layout)
      : ShmOperation(shared),
        layout_(std::move(layout)),
        gate_(GateKind::kMove, layout_.agreed),
        gated_(layout_.longestIsLocal || layout_.longest >= kMoveDirectFrom) {
    const AreaLayout& area = board().layout();
    capacity_ = layout_.personal ? area.partBytes() : area.contributionBytes() / 64 * 64;
    reads_ = std::any_of(layout_.incoming.begin(), layout_.incoming.end(),
                         [](const Segments& stream) { return stream.total() > 0; });
    writes_ = std::any_of(layout_.outgoing.begin(), layout_.outgoing.end(),
                          [](const Segments& stream) { return stream.total() > 0; });
  }

 protected:
  Advance advance(Budget& budget) override {
    const Stage before = stage_;
    bool something = copySelf(budget);
    if (stage_ == Stage::kBegin) begin();
    if (stage_ == Stage::kGate) passGate();
    Advance result = Advance::kNothing;
    if (stage_ == Stage::kSlots) result = advanceSlots(budget);
    if (stage_ == Stage::kDirect) result = advanceDirect(budget);
    if (result == Advance::kDone && selfDone_ < layout_.self.total()) result = Advance::kSomething;
    if (result == Advance::kDone) {
      board().finish(end_);
      return result;
    }
    something = something || stage_ != before;
    return something ? Advance::kSomething : result;
  }

 private:
  enum class Stage { kBegin, kGate, kSlots, kDirect };

  bool copySelf(Budget& budget) {
    const Segments& self = layout_.self;
    bool something = false;
    while (selfDone_ < self.total() && !budget.spent()) {
      const std::int64_t end =
          std::min(self.total(), selfDone_ + static_cast<std::int64_t>(kMoveBlock));
      self.forEach(selfDone_, end,
                   [&](std::size_t piece, std::int64_t offset, std::int64_t count, std::int64_t) {
                     if (self.in(piece, offset) == self.out(piece, offset)) return;
                     copy(self.out(piece, offset), self.in(piece, offset),
                          static_cast<std::size_t>(count), Store::kCached);
                   });
      budget.charge(kMoveBlock);
      selfDone_ = end;
      something = true;
    }
    return something;
  }

  void begin() {
    const std::uint64_t step = board().base();
    if (!gated_) return startSlots(step, layout_.longest);
    if (!board().mayContribute(step)) return;
    const bool shared = gate_.write(board(), step, describe());
    // Who knows that its memory bars the direct way goes on; the note travels with its first data.
    if (isSource(board().me()) && !shared && !layout_.longestIsLocal) {
      return startSlots(step + 1, layout_.longest);
    }
    board().contribute(step + 1);
    stage_ = Stage::kGate;
  }

  bool isSource(int member) const { return layout_.sources[static_cast<std::size_t>(member)]; }

  // Ranges: of each piece of the common stream, or of the stream to each member. Not shared if one
  // lies elsewhere, or if this member's output could overwrite what others still read.
  GateNote describe() {
    GateNote note;
    note.extra = layout_.longest;
    if (!isSource(board().me())) return note;
    for (const Segments& stream : layout_.outgoing) {
      for (const Piece& piece : stream.pieces()) {
        const auto bytes = static_cast<std::size_t>(piece.count);
        const auto range = sharedRange(board(), piece.in, bytes);
        if (!range || overwritten(piece.in, bytes)) return GateNote{false, false, note.extra, {}};
        note.ranges.push_back(*range);
      }
    }
    note.shared = true;
    return note;
  }

  bool overwritten(const void* memory, std::size_t bytes) const {
    for (const Segments& stream : layout_.incoming) {
      for (const Piece& piece : stream.pieces()) {
        if (overlap(memory, bytes, piece.out, static_cast<std::size_t>(piece.count))) return true;
      }
    }
    return false;
  }

  void passGate() {
    const std::uint64_t step = board().base();
    for (; notesRead_ < board().size(); ++notesRead_) {
      if (!layout_.longestIsLocal && !isSource(notesRead_)) {
        notes_.emplace_back();
        continue;
      }
      if (!board().contributed(notesRead_, step)) return;
      Result<GateNote> note = gate_.read(board(), step, notesRead_);
      if (!note.ok()) return failForGood(note.status());
      layout_.longest = std::max(layout_.longest, note->extra);
      allShared_ = allShared_ && (note->shared || !isSource(notesRead_));
      notes_.push_back(std::move(note).value());
      // The lengths are known already: one ordinary source decides.
      if (!allShared_ && !layout_.longestIsLocal) return startSlots(step + 1, layout_.longest);
    }
    if (!allShared_) return startSlots(step + 1, layout_.longest);
    if (Status checked = checkNotes(); !checked.ok()) return failForGood(checked);
    end_ = step + 2;
    stage_ = Stage::kDirect;
  }

  // Replaces each incoming stream's inputs by where they lie in the sender's arena.
  Status checkNotes() {
    for (int member = 0; member < board().size(); ++member) {
      Segments& stream = layout_.incoming[static_cast<std::size_t>(member)];
      if (stream.total() == 0) continue;
      const std::vector<SharedRange>& ranges = notes_[static_cast<std::size_t>(member)].ranges;
      std::vector<Piece> pieces(stream.pieces().begin(), stream.pieces().end());
      const std::size_t skip = layout_.personal ? static_cast<std::size_t>(board().me()) : 0;
      for (std::size_t i = 0; i < pieces.size(); ++i) {
        const auto bytes = static_cast<std::uint64_t>(pieces[i].count);
        if (skip + i >= ranges.size() || ranges[skip + i].bytes != bytes) {
          return mismatch(member);
        }
        pieces[i].in = board().at(member, ranges[skip + i].offset, bytes);
        if (pieces[i].in == nullptr) return mismatch(member);
      }
      stream = Segments(pieces, 1);
    }
    return {};
  }

  Status mismatch(int member) {
    return Status(Code::kMismatch, "member " + std::to_string(member) +
                                       " of this set sends other amounts than member " +
                                       std::to_string(board().me()) + " expects");
  }

  void startSlots(std::uint64_t step, std::uint64_t longest) {
    first_ = step;
    rounds_ = (longest + capacity_ - 1) / capacity_;
    end_ = first_ + rounds_;
    // Who writes nothing has contributed, who reads nothing has consumed, before it began.
    if (!writes_) {
      written_ = rounds_;
      board().contribute(end_);
    }
    if (!reads_) {
      read_ = rounds_;
      board().consume(end_);
    }
    stage_ = Stage::kSlots;
  }

  Advance advanceSlots(Budget& budget) {
    Advance result = Advance::kNothing;
    while (written_ < rounds_ || read_ < rounds_) {
      if (budget.spent()) return Advance::kSomething;
      if (written_ < rounds_ && board().mayContribute(first_ + written_)) {
        writeRound(written_++, budget);
        board().contribute(first_ + written_);
      } else if (read_ < written_ && readRound(budget)) {
        // One more member's data, or a whole round.
      } else {
        return result;
      }
      result = Advance::kSomething;
    }
    return Advance::kDone;
  }

  // The bytes of a stream that belong to a round.
  std::pair<std::int64_t, std::int64_t> window(const Segments& stream, std::uint64_t round) const {
    const std::uint64_t total = static_cast<std::uint64_t>(stream.total());
    const std::uint64_t begin = std::min(total, round * capacity_);
    return {static_cast<std::int64_t>(begin),
            static_cast<std::int64_t>(std::min(total, begin + capacity_))};
  }
  std::size_t partOffset(int writer, int reader) const {
    if (!layout_.personal) return 0;
    return static_cast<std::size_t>(reader < writer ? reader : reader - 1) * capacity_;
  }

  void writeRound(std::uint64_t round, Budget& budget) {
    std::byte* slot = board().contribution(board().me(), first_ + round);
    for (std::size_t i = 0; i < layout_.outgoing.size(); ++i) {
      const auto [begin, end] = window(layout_.outgoing[i], round);
      if (begin == end) continue;
      layout_.outgoing[i].gather(begin, end, slot + partOffset(board().me(), static_cast<int>(i)),
                                 Store::kCached);
      budget.charge(static_cast<std::size_t>(end - begin));
    }
  }

  // Reads what the next member has for this round; false if it is not there yet.
  bool readRound(Budget& budget) {
    if (readMember_ < board().size()) {
      const Segments& stream = layout_.incoming[static_cast<std::size_t>(readMember_)];
      const auto [begin, end] = window(stream, read_);
      if (begin < end) {
        if (!board().contributed(readMember_, first_ + read_)) return false;
        stream.scatter(begin, end,
                       board().contribution(readMember_, first_ + read_) +
                           partOffset(readMember_, board().me()),
                       Store::kCached);
        budget.charge(static_cast<std::size_t>(end - begin));
      }
      ++readMember_;
      return true;
    }
    readMember_ = 0;
    ++read_;
    board().consume(first_ + read_);
    return true;
  }

  Advance advanceDirect(Budget& budget) {
    Advance result = Advance::kNothing;
    for (; readMember_ < board().size(); ++readMember_, position_ = 0) {
      const Segments& stream = layout_.incoming[static_cast<std::size_t>(readMember_)];
      while (position_ < stream.total()) {
        if (budget.spent()) return Advance::kSomething;
        const std::int64_t end =
            std::min(stream.total(), position_ + static_cast<std::int64_t>(kMoveBlock));
        stream.forEach(
            position_, end,
            [&](std::size_t piece, std::int64_t offset, std::int64_t count, std::int64_t) {
              copy(stream.out(piece, offset), stream.in(piece, offset),
                   static_cast<std::size_t>(count), Store::kCached);
            });
        budget.charge(static_cast<std::size_t>(end - position_));
        context().zeroCopyBytes += static_cast<std::uint64_t>(end - position_);
        position_ = end;
        result = Advance::kSomething;
      }
    }
    if (!announced_) {
      board().contribute(end_);  // this member has read everything
      announced_ = true;
      result = Advance::kSomething;
    }
    // Until all members have, none may reuse its memory.
    return board().allContributed(end_ - 1) ? Advance::kDone : result;
  }

  MoveLayout layout_;
  Gate gate_;
  const bool gated_;
  std::size_t capacity_ = 0;
  bool reads_ = false;
  bool writes_ = false;

  Stage stage_ = Stage::kBegin;
  std::int64_t selfDone_ = 0;
  std::uint64_t end_ = 0;

  // The state at the gate.
  int notesRead_ = 0;
  bool allShared_ = true;
  std::vector<GateNote> notes_;

  // Through slots.
  std::uint64_t first_ = 0;
  std::uint64_t rounds_ = 0;
  std::uint64_t written_ = 0;
  std::uint64_t read_ = 0;
  int readMember_ = 0;

  // Directly.
  std::int64_t position_ = 0;
  bool announced_ = false;
};

}  // namespace

OperationPtr makeMove(ShmContext& context, MoveLayout layout) {
  if (context.board.size() == 1) {  // no member reads what goes to others
    layout.outgoing.clear();
    layout.longest = 0;
    layout.longestIsLocal = false;
  }
  return std::make_unique<Move>(context, std::move(layout));
}

}  // namespace farandole::collective::shm
