#include <algorithm>
#include <functional>
#include <utility>

#include "collective/link/operations.h"

namespace farandole::collective::link {
namespace {

// Chunks of each kind that are in flight at once.
constexpr std::size_t kSliceWindow = 4;
constexpr std::uint64_t kResults = kSteps / 2;  // the steps of results; inputs have those before
constexpr std::uint64_t kMostChunks = kResults;

// Chunk number c of every slice is handled together. A chunk's way:
//   its receives are posted -> everybody's input has come -> reduced -> results sent
// and, for the other members' slices:
//   input sent; receive of the result posted -> it has come -> unpacked, if it was packed.
//
// In place, a result may arrive where the input that is being sent lies: its owner cannot have
// computed it before it had received that input.
class Slices final : public LinkOperation {
 public:
  Slices(Context& shared, Elements elements, SliceLayout layout)
      : LinkOperation(shared, 4 * kSliceWindow),
        elements_(std::move(elements)),
        layout_(std::move(layout)) {
    cut();
  }

 protected:
  Advance advance(Budget& budget) override {
    const FpModeGuard guard;
    if (!std::exchange(begun_, true) && !reserve(layOut())) return Advance::kSomething;
    bool something = false;
    for (;;) {
      const bool steps[] = {postInputs(), postResults(), sendInputs(), reduceNext(budget),
                            takeResults(budget)};
      const bool moved = std::ranges::any_of(steps, std::identity());
      something = something || moved;
      if (!moved || budget.spent()) break;
    }
    if (complete()) {
      if (layout_.target != nullptr) {
        copy(layout_.target, layout_.aside.data(), layout_.aside.size(), Store::kCached);
      }
      return Advance::kDone;
    }
    return something ? Advance::kSomething : Advance::kNothing;
  }

 private:
  // Four kinds of counters, kSliceWindow of each.
  enum Kind : std::size_t { kInputsIn, kInputsOut, kResultsIn, kResultsOut };
  static std::size_t counter(Kind kind, std::size_t chunk) {
    return kind * kSliceWindow + chunk % kSliceWindow;
  }

  void cut() {
    const auto most = static_cast<std::int64_t>(
        std::max<std::size_t>(layout_.chunkBytes / elements_.wireBytes(), 1));
    for (int member = 0; member < members(); ++member) {
      const std::int64_t begin = layout_.cuts[static_cast<std::size_t>(member)];
      const std::int64_t end = layout_.cuts[static_cast<std::size_t>(member) + 1];
      // There are only so many steps.
      const std::int64_t fewest = (end - begin) / static_cast<std::int64_t>(kMostChunks / 4);
      slices_.push_back(cutIntoChunks(elements_.segments(), begin, end, std::max(most, fewest)));
      chunks_ = std::max(chunks_, slices_.back().size());
      largest_ = std::max(largest_, largest(slices_.back()));
    }
  }

  const std::vector<Chunk>& slice(int member) const {
    return slices_[static_cast<std::size_t>(member)];
  }
  const std::vector<Chunk>& mine() const { return slice(me()); }
  // The other members, each beginning with the next one: not all at the same.
  int other(int index) const { return (me() + 1 + index) % members(); }
  int others() const { return members() - 1; }
  bool reads() const { return layout_.reader == SliceLayout::kEverybody || layout_.reader == me(); }
  // The result of its own slice.
  bool keeps() const { return reads() || layout_.reader == SliceLayout::kOwner; }
  bool readBy(int member) const {
    return layout_.reader == SliceLayout::kEverybody || layout_.reader == member;
  }

  // ---- Scratch memory: places for one chunk each.

  std::size_t layOut() {
    place_ = (static_cast<std::size_t>(largest_) * elements_.wireBytes() + 63) / 64 * 64;
    const auto peers = static_cast<std::size_t>(others());
    // Only where something has to be packed or has no other place.
    const auto anyPacked = [&](bool own, auto direct) {
      for (int member = 0; member < members(); ++member) {
        if ((member == me()) != own) continue;
        if (!std::ranges::all_of(slice(member), direct)) return true;
      }
      return false;
    };
    const auto in = [&](const Chunk& chunk) { return elements_.inPlace(chunk); };
    const auto out = [&](const Chunk& chunk) { return elements_.outPlace(chunk); };
    std::size_t next = 0;
    const auto area = [&](bool needed, std::size_t perChunk) {
      return std::exchange(next, next + (needed ? kSliceWindow * perChunk * place_ : 0));
    };
    areas_.inputs = area(!mine().empty(), peers);
    areas_.packed = area(anyPacked(false, in), peers);
    areas_.own = area(anyPacked(true, in), 1);
    areas_.result = area(!keeps() || anyPacked(true, out), 1);
    areas_.arrived = area(reads() && anyPacked(false, out), peers);
    return next;
  }
  std::byte* place(std::size_t area, std::size_t chunk, int index, int perChunk) const {
    const std::size_t slot =
        chunk % kSliceWindow * static_cast<std::size_t>(perChunk) + static_cast<std::size_t>(index);
    return traffic().scratch() + area + slot * place_;
  }
  std::byte* inputPlace(std::size_t chunk, int index) const {
    return place(areas_.inputs, chunk, index, others());
  }
  std::byte* packedPlace(std::size_t chunk, int index) const {
    return place(areas_.packed, chunk, index, others());
  }
  std::byte* arrivedPlace(std::size_t chunk, int index) const {
    return place(areas_.arrived, chunk, index, others());
  }

  // ---- Steps: each does one chunk, if it can.

  bool postInputs() {
    const std::size_t c = inputsPosted_;
    if (c >= mine().size() || c >= reduced_ + kSliceWindow) return false;
    for (int i = 0; i < others(); ++i) {
      traffic().receive(other(i), c, std::span(inputPlace(c, i), elements_.wireBytes(mine()[c])),
                        counter(kInputsIn, c));
    }
    ++inputsPosted_;
    return true;
  }

  bool sendInputs() {
    const std::size_t c = inputsSent_;
    if (c >= chunks_ || !traffic().clear(counter(kInputsOut, c))) return false;
    for (int i = 0; i < others(); ++i) {
      const std::vector<Chunk>& chunks = slice(other(i));
      if (c >= chunks.size()) continue;
      const Chunk& chunk = chunks[c];
      const std::byte* from = chunk.in;
      if (!elements_.inPlace(chunk)) {
        elements_.pack(chunk.begin, chunk.end, packedPlace(c, i));
        from = packedPlace(c, i);
      }
      traffic().send(other(i), c, std::span(from, elements_.wireBytes(chunk)),
                     counter(kInputsOut, c));
    }
    ++inputsSent_;
    return true;
  }

  bool reduceNext(Budget& budget) {
    const std::size_t c = reduced_;
    if (c >= inputsPosted_ || !traffic().clear(counter(kInputsIn, c)) ||
        !traffic().clear(counter(kResultsOut, c))) {
      return false;
    }
    const Chunk& chunk = mine()[c];
    const std::byte* own = chunk.in;
    if (!elements_.inPlace(chunk)) {
      std::byte* const packed = place(areas_.own, c, 0, 1);
      elements_.pack(chunk.begin, chunk.end, packed);
      own = packed;
    }
    sources_.assign(static_cast<std::size_t>(members()), own);
    for (int i = 0; i < others(); ++i) {
      sources_[static_cast<std::size_t>(other(i))] = inputPlace(c, i);
    }
    std::byte* const result = resultPlace(c);
    elements_.reduceInto(result, sources_, chunk.count());
    budget.charge(elements_.wireBytes(chunk) * static_cast<std::size_t>(members() + 1));
    const std::span bytes(static_cast<const std::byte*>(result), elements_.wireBytes(chunk));
    for (int i = 0; i < others(); ++i) {
      if (readBy(other(i))) traffic().send(other(i), kResults + c, bytes, counter(kResultsOut, c));
    }
    if (keeps() && !elements_.outPlace(chunk)) elements_.unpack(chunk.begin, chunk.end, result);
    ++reduced_;
    return true;
  }

  std::byte* resultPlace(std::size_t c) const {
    const Chunk& chunk = mine()[c];
    return keeps() && elements_.outPlace(chunk) ? chunk.out : place(areas_.result, c, 0, 1);
  }

  bool postResults() {
    const std::size_t c = resultsPosted_;
    if (!reads() || c >= chunks_ || c >= resultsTaken_ + kSliceWindow) return false;
    for (int i = 0; i < others(); ++i) {
      const std::vector<Chunk>& chunks = slice(other(i));
      if (c >= chunks.size()) continue;
      std::byte* const to = elements_.outPlace(chunks[c]) ? chunks[c].out : arrivedPlace(c, i);
      traffic().receive(other(i), kResults + c, std::span(to, elements_.wireBytes(chunks[c])),
                        counter(kResultsIn, c));
    }
    ++resultsPosted_;
    return true;
  }

  bool takeResults(Budget& budget) {
    const std::size_t c = resultsTaken_;
    if (c >= resultsPosted_ || !traffic().clear(counter(kResultsIn, c))) return false;
    for (int i = 0; i < others(); ++i) {
      const std::vector<Chunk>& chunks = slice(other(i));
      if (c >= chunks.size() || elements_.outPlace(chunks[c])) continue;
      elements_.unpack(chunks[c].begin, chunks[c].end, arrivedPlace(c, i));
      budget.charge(2 * elements_.wireBytes(chunks[c]));
    }
    ++resultsTaken_;
    return true;
  }

  bool complete() const {
    if (inputsSent_ < chunks_ || reduced_ < mine().size()) return false;
    if (reads() && resultsTaken_ < chunks_) return false;
    for (std::size_t i = 0; i < kSliceWindow; ++i) {
      if (!traffic().clear(counter(kInputsOut, i)) || !traffic().clear(counter(kResultsOut, i))) {
        return false;
      }
    }
    return true;
  }

  struct Areas {
    std::size_t inputs = 0;   // everybody's, of my slice
    std::size_t packed = 0;   // my inputs, of the others' slices
    std::size_t own = 0;      // my inputs, of my slice
    std::size_t result = 0;   // the result of my slice
    std::size_t arrived = 0;  // results of the others' slices
  };

  const Elements elements_;
  const SliceLayout layout_;
  std::vector<std::vector<Chunk>> slices_;
  std::size_t chunks_ = 0;  // chunks of the slice that has most
  std::int64_t largest_ = 0;
  std::size_t place_ = 0;
  Areas areas_;
  bool begun_ = false;
  // How many chunks are past each step.
  std::size_t inputsPosted_ = 0;
  std::size_t inputsSent_ = 0;
  std::size_t reduced_ = 0;
  std::size_t resultsPosted_ = 0;
  std::size_t resultsTaken_ = 0;
  std::vector<const void*> sources_;
};

}  // namespace

std::vector<std::int64_t> evenCuts(const Segments& segments, int members) {
  std::vector<std::int64_t> cuts;
  for (int i = 0; i <= members; ++i) cuts.push_back(segments.boundary(i, members));
  return cuts;
}

OperationPtr makeSlices(Context& context, Elements elements, SliceLayout layout) {
  return std::make_unique<Slices>(context, std::move(elements), std::move(layout));
}

}  // namespace farandole::collective::link
