// Broadcasts: chunk after chunk from the parent, into its place, and on to the children, along a
// binomial tree (short messages) or a pipelined chain (long ones); choose.h names the paper that
// compares them.
#include <algorithm>
#include <utility>

#include "collective/link/chunks.h"
#include "collective/link/operations.h"

namespace farandole::collective::link {
namespace {

constexpr std::size_t kBroadcastWindow = 4;

class Broadcast final : public LinkOperation {
 public:
  Broadcast(Context& shared, Segments segments, int root, Algorithm algorithm)
      : LinkOperation(shared, 2 * kBroadcastWindow), segments_(std::move(segments)) {
    const std::size_t bytes = segments_.bytes();
    const bool chain = algorithm == Algorithm::kChain;
    std::size_t most = chain ? chainChunkBytes(bytes) : bytes;
    most = std::max(most, bytes / (kSteps / 4));  // so many steps there are
    chunks_ = cutIntoChunks(segments_, 0, segments_.total(), static_cast<std::int64_t>(most));
    const int place = (me() - root + members()) % members();
    const auto at = [&](int other) { return (other + root) % members(); };
    if (chain) {
      if (place > 0) parent_ = at(place - 1);
      if (place + 1 < members()) children_.push_back(at(place + 1));
      return;
    }
    // Place p is reached from p without its highest bit; the nearest children have most to pass on,
    // so they come first.
    int step = 1;
    for (; step <= place; step <<= 1) {
    }
    if (place > 0) parent_ = at(place - step / 2);
    for (; place + step < members(); step <<= 1) children_.push_back(at(place + step));
  }

 protected:
  Advance advance(Budget& budget) override {
    if (!std::exchange(begun_, true) && !reserve(layOut())) return Advance::kSomething;
    bool something = false;
    while (!budget.spent()) {
      const bool posted = post();
      const bool passed = pass(budget);
      if (!posted && !passed) break;
      something = true;
    }
    const bool complete = passed_ == chunks_.size() && clear();
    if (complete) return Advance::kDone;
    return something ? Advance::kSomething : Advance::kNothing;
  }

 private:
  std::size_t layOut() {
    place_ = (static_cast<std::size_t>(largest(chunks_)) + 63) / 64 * 64;
    const bool packs = !std::ranges::all_of(chunks_, [](const Chunk& c) { return c.whole; });
    return packs ? kBroadcastWindow * place_ : 0;
  }
  std::byte* packed(std::size_t c) const {
    return traffic().scratch() + c % kBroadcastWindow * place_;
  }
  static std::size_t arriving(std::size_t c) { return c % kBroadcastWindow; }
  static std::size_t leaving(std::size_t c) { return kBroadcastWindow + c % kBroadcastWindow; }

  bool post() {
    const std::size_t c = posted_;
    if (parent_ < 0 || c >= chunks_.size() || c >= passed_ + kBroadcastWindow) return false;
    // Its memory may still be on the way to the children.
    if (!chunks_[c].whole && !traffic().clear(leaving(c))) return false;
    std::byte* const to = chunks_[c].whole ? chunks_[c].out : packed(c);
    traffic().receive(parent_, c, std::span(to, bytesOf(c)), arriving(c));
    ++posted_;
    return true;
  }

  bool pass(Budget& budget) {
    const std::size_t c = passed_;
    if (c >= chunks_.size() || !traffic().clear(leaving(c))) return false;
    if (parent_ >= 0 && (c >= posted_ || !traffic().clear(arriving(c)))) return false;
    const Chunk& chunk = chunks_[c];
    const std::byte* from = parent_ < 0 ? chunk.in : chunk.out;
    if (!chunk.whole) {
      from = packed(c);
      if (parent_ < 0) segments_.gather(chunk.begin, chunk.end, packed(c), Store::kCached);
    }
    for (const int child : children_) {
      traffic().send(child, c, std::span(from, bytesOf(c)), leaving(c));
    }
    if (parent_ < 0) {
      copyAtRoot(chunk);
    } else if (!chunk.whole) {
      segments_.scatter(chunk.begin, chunk.end, packed(c), Store::kCached);
    }
    budget.charge(bytesOf(c));
    ++passed_;
    return true;
  }

  void copyAtRoot(const Chunk& chunk) {
    segments_.forEach(
        chunk.begin, chunk.end,
        [&](std::size_t piece, std::int64_t offset, std::int64_t count, std::int64_t) {
          if (segments_.pieces()[piece].out == nullptr) return;
          copy(segments_.out(piece, offset), segments_.in(piece, offset),
               static_cast<std::size_t>(count), Store::kCached);
        });
  }

  std::size_t bytesOf(std::size_t c) const { return static_cast<std::size_t>(chunks_[c].count()); }
  bool clear() const {
    for (std::size_t i = 0; i < kBroadcastWindow; ++i) {
      if (!traffic().clear(leaving(i))) return false;
    }
    return true;
  }

  const Segments segments_;
  std::vector<Chunk> chunks_;
  int parent_ = -1;
  std::vector<int> children_;
  std::size_t place_ = 0;
  bool begun_ = false;
  std::size_t posted_ = 0;
  std::size_t passed_ = 0;  // chunks that were passed on and are in place
};

}  // namespace

OperationPtr makeBroadcast(Context& context, Segments segments, int root, Algorithm algorithm) {
  return std::make_unique<Broadcast>(context, std::move(segments), root, algorithm);
}

}  // namespace farandole::collective::link
