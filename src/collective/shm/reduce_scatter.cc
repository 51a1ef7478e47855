#include <algorithm>
#include <string>
#include <vector>

#include "collective/shm/gate.h"
#include "collective/shm/operations.h"

namespace farandole::collective::shm {
namespace {

constexpr std::uint64_t kReduceDirectFrom = 32 << 10;
constexpr std::size_t kReduceBlock = std::size_t{512} << 10;

class ReduceScatter final : public ShmOperation {
 public:
  ReduceScatter(ShmContext& shared, const void* in, void* out, std::span<const std::int64_t> counts,
                const Reduction& reduction)
      : ShmOperation(shared),
        in_(static_cast<const std::byte*>(in)),
        out_(static_cast<std::byte*>(out)),
        counts_(counts.begin(), counts.end()),
        reduction_(reduction),
        elementBytes_(sizeOf(reduction.dtype)),
        starts_(counts_.size() + 1),
        partIndex_(counts_.size()),
        inputs_(counts_.size()),
        sources_(counts_.size()) {
    std::size_t receivers = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      starts_[i + 1] = starts_[i] + counts_[i];
      partIndex_[i] = receivers;
      if (counts_[i] > 0) ++receivers;
    }
    // A member contributes one part for each receiver but itself: the same places for all members.
    const std::size_t parts =
        std::max<std::size_t>(1, receivers == counts_.size() ? receivers - 1 : receivers);
    capacity_ = board().layout().contributionBytes() / parts / 64 * 64;
    gated_ = totalBytes() >= kReduceDirectFrom;
    const std::int64_t most = *std::max_element(counts_.begin(), counts_.end());
    rounds_ = (static_cast<std::uint64_t>(most) * elementBytes_ + capacity_ - 1) / capacity_;
  }

 protected:
  Advance advance(Budget& budget) override {
    const Stage before = stage_;
    if (stage_ == Stage::kBegin) begin();
    if (stage_ == Stage::kGate) passGate();
    Advance result = Advance::kNothing;
    if (stage_ == Stage::kSlots) result = advanceSlots(budget);
    if (stage_ == Stage::kDirect) result = advanceDirect(budget);
    if (result == Advance::kDone) board().finish(end_);
    return result == Advance::kNothing && stage_ != before ? Advance::kSomething : result;
  }

 private:
  enum class Stage { kBegin, kGate, kSlots, kDirect };

  std::size_t me() { return static_cast<std::size_t>(board().me()); }
  std::size_t totalBytes() const {
    return static_cast<std::size_t>(starts_.back()) * elementBytes_;
  }

  void begin() {
    const std::uint64_t step = board().base();
    if (!gated_) return startSlots(step);
    if (!board().mayContribute(step)) return;
    GateNote note;
    // An output inside the input would overwrite what others still read.
    const bool apart = !overlap(in_, totalBytes(), out_, outBytes());
    if (const auto range = sharedRange(board(), in_, totalBytes()); range && apart) {
      note.shared = true;
      note.ranges.push_back(*range);
    }
    Gate gate(GateKind::kReduceScatter, totalBytes());
    if (!gate.write(board(), step, note)) return startSlots(step + 1);
    board().contribute(step + 1);
    stage_ = Stage::kGate;
  }

  std::size_t outBytes() { return static_cast<std::size_t>(counts_[me()]) * elementBytes_; }

  void passGate() {
    const std::uint64_t step = board().base();
    const Gate gate(GateKind::kReduceScatter, totalBytes());
    for (; notes_ < board().size(); ++notes_) {
      if (!board().contributed(notes_, step)) return;
      const Result<GateNote> note = gate.read(board(), step, notes_);
      if (!note.ok()) return failForGood(note.status());
      if (!note.value().shared) return startSlots(step + 1);
      const std::vector<SharedRange>& ranges = note.value().ranges;
      const std::byte* input = ranges.size() == 1 && ranges[0].bytes == totalBytes()
                                   ? board().at(notes_, ranges[0].offset, ranges[0].bytes)
                                   : nullptr;
      if (input == nullptr) {
        return failForGood(
            Status(Code::kMismatch, "member " + std::to_string(notes_) +
                                        " of this set describes its input outside its memory"));
      }
      inputs_[static_cast<std::size_t>(notes_)] = input;
    }
    end_ = step + 2;
    stage_ = Stage::kDirect;
  }

  void startSlots(std::uint64_t step) {
    first_ = step;
    end_ = first_ + rounds_;
    if (counts_[me()] == 0) {  // nothing to read
      reduced_ = rounds_;
      board().consume(end_);
    }
    stage_ = Stage::kSlots;
  }

  Advance advanceSlots(Budget& budget) {
    Advance result = Advance::kNothing;
    while (written_ < rounds_ || reduced_ < rounds_) {
      if (budget.spent()) return Advance::kSomething;
      if (written_ < rounds_ && board().mayContribute(first_ + written_)) {
        writeRound(written_++, budget);
        board().contribute(first_ + written_);
      } else if (reduced_ < written_ && board().allContributed(first_ + reduced_)) {
        reduceRound(reduced_++, budget);
        board().consume(first_ + reduced_);
      } else {
        return result;
      }
      result = Advance::kSomething;
    }
    return Advance::kDone;
  }

  struct Window {
    std::int64_t begin;
    std::int64_t count;
  };
  Window window(std::size_t receiver, std::uint64_t round) const {
    const auto elements = static_cast<std::int64_t>(capacity_ / elementBytes_);
    const std::int64_t begin =
        std::min(counts_[receiver], static_cast<std::int64_t>(round) * elements);
    return {begin, std::min(counts_[receiver] - begin, elements)};
  }
  std::byte* slotFor(std::size_t writer, std::size_t reader, std::uint64_t round) {
    std::size_t index = partIndex_[reader];
    if (writer < reader && counts_[writer] > 0) --index;
    return board().contribution(static_cast<int>(writer), first_ + round) + index * capacity_;
  }

  void writeRound(std::uint64_t round, Budget& budget) {
    for (std::size_t receiver = 0; receiver < counts_.size(); ++receiver) {
      const Window part = window(receiver, round);
      if (receiver == me() || part.count == 0) continue;
      const std::size_t bytes = static_cast<std::size_t>(part.count) * elementBytes_;
      copy(slotFor(me(), receiver, round),
           in_ + static_cast<std::size_t>(starts_[receiver] + part.begin) * elementBytes_, bytes,
           Store::kCached);
      budget.charge(bytes);
    }
  }

  void reduceRound(std::uint64_t round, Budget& budget) {
    const Window part = window(me(), round);
    if (part.count == 0) return;
    for (std::size_t writer = 0; writer < counts_.size(); ++writer) {
      sources_[writer] =
          writer == me()
              ? in_ + static_cast<std::size_t>(starts_[me()] + part.begin) * elementBytes_
              : slotFor(writer, me(), round);
    }
    reduceInto(part.begin, part.count, budget);
  }

  void reduceInto(std::int64_t begin, std::int64_t count, Budget& budget) {
    const FpModeGuard guard;
    void* const destination = out_ + static_cast<std::size_t>(begin) * elementBytes_;
    reduce(std::span(&destination, 1), sources_, count, reduction_.dtype, reduction_.op,
           reduction_.scale, Store::kCached);
    budget.charge(static_cast<std::size_t>(count) * elementBytes_ * counts_.size());
  }

  Advance advanceDirect(Budget& budget) {
    Advance result = Advance::kNothing;
    const auto block = static_cast<std::int64_t>(kReduceBlock / elementBytes_);
    while (position_ < counts_[me()]) {
      if (budget.spent()) return Advance::kSomething;
      const std::int64_t count = std::min(block, counts_[me()] - position_);
      const std::size_t shift = static_cast<std::size_t>(starts_[me()] + position_) * elementBytes_;
      for (std::size_t writer = 0; writer < counts_.size(); ++writer) {
        sources_[writer] = inputs_[writer] + shift;
      }
      reduceInto(position_, count, budget);
      context().zeroCopyBytes += static_cast<std::uint64_t>(count) * elementBytes_;
      position_ += count;
      result = Advance::kSomething;
    }
    if (!announced_) {
      board().contribute(end_);  // this member has read everybody's input
      announced_ = true;
      result = Advance::kSomething;
    }
    return board().allContributed(end_ - 1) ? Advance::kDone : result;
  }

  const std::byte* in_;
  std::byte* out_;
  const std::vector<std::int64_t> counts_;
  const Reduction reduction_;
  const std::size_t elementBytes_;
  std::vector<std::int64_t> starts_;
  std::vector<std::size_t> partIndex_;  // each receiver's index among those with a part
  std::vector<const std::byte*> inputs_;
  std::vector<const void*> sources_;
  std::size_t capacity_ = 0;
  bool gated_ = false;
  std::uint64_t rounds_ = 0;

  Stage stage_ = Stage::kBegin;
  std::uint64_t first_ = 0;
  std::uint64_t end_ = 0;
  int notes_ = 0;
  std::uint64_t written_ = 0;
  std::uint64_t reduced_ = 0;
  std::int64_t position_ = 0;
  bool announced_ = false;
};

}  // namespace

OperationPtr makeReduceScatter(ShmContext& context, const void* in, void* out,
                               std::span<const std::int64_t> counts, const Reduction& reduction) {
  return std::make_unique<ReduceScatter>(context, in, out, counts, reduction);
}

}  // namespace farandole::collective::shm
