#include <cstring>
#include <utility>
#include <vector>

#include "collective/link/gossip.h"
#include "collective/link/operations.h"

namespace farandole::collective::link {
namespace {

std::vector<std::size_t> everybody(const Context& context, std::size_t bytes) {
  return std::vector<std::size_t>(static_cast<std::size_t>(context.size()), bytes);
}

class SmallAllreduce final : public LinkOperation {
 public:
  SmallAllreduce(Context& shared, Elements elements, Algorithm algorithm)
      : LinkOperation(shared, Gossip::kCounters),
        elements_(std::move(elements)),
        total_(elements_.segments().total()),
        direct_(algorithm == Algorithm::kExchange),
        gossip_(shared, traffic(),
                everybody(shared, static_cast<std::size_t>(total_) * elements_.wireBytes()),
                direct_, 0, 0) {
    // One piece needs no packing.
    const std::vector<Chunk> chunks = cutIntoChunks(elements_.segments(), 0, total_, total_);
    if (chunks.size() == 1) only_ = chunks.front();
  }

 protected:
  Advance advance(Budget&) override {
    const FpModeGuard guard;
    if (!begun_ && !begin()) return Advance::kSomething;
    const bool something = gossip_.advance();
    if (!gossip_.complete()) return something ? Advance::kSomething : Advance::kNothing;
    finish();
    return Advance::kDone;
  }

 private:
  bool begin() {
    begun_ = true;
    const std::size_t place = elements_.outPlace(only_) ? 0 : gossip_.blockBytes(me());
    if (!reserve(gossip_.scratchBytes() + place)) return false;
    const std::byte* mine = direct_ && elements_.inPlace(only_) ? only_.in : nullptr;
    if (mine == nullptr) elements_.pack(0, total_, traffic().scratch());
    gossip_.begin(traffic().scratch(), mine);
    return true;
  }

  void finish() {
    if (total_ == 0) return;
    std::vector<const void*> sources;
    sources.reserve(static_cast<std::size_t>(members()));
    for (int member = 0; member < members(); ++member) sources.push_back(gossip_.block(member));
    if (elements_.outPlace(only_)) return elements_.reduceInto(only_.out, sources, total_);
    std::byte* const result = traffic().scratch() + gossip_.scratchBytes();
    elements_.reduceInto(result, sources, total_);
    elements_.unpack(0, total_, result);
  }

  const Elements elements_;
  const std::int64_t total_;
  const bool direct_;
  Gossip gossip_;
  Chunk only_;
  bool begun_ = false;
};

// The barrier too: no member has all members' empty blocks before all have begun.
class SmallAllgather final : public LinkOperation {
 public:
  SmallAllgather(Context& shared, const void* in, void* out, std::span<const std::size_t> bytes,
                 Algorithm algorithm)
      : LinkOperation(shared, Gossip::kCounters),
        in_(static_cast<const std::byte*>(in)),
        out_(static_cast<std::byte*>(out)),
        gossip_(shared, traffic(), bytes, algorithm == Algorithm::kExchange, 0, 0) {}

 protected:
  Advance advance(Budget&) override {
    if (!std::exchange(begun_, true)) {
      if (!reserve(gossip_.scratchBytes())) return Advance::kSomething;
      if (const std::size_t bytes = gossip_.blockBytes(me()); bytes > 0) {
        std::memcpy(traffic().scratch(), in_, bytes);
      }
      gossip_.begin(traffic().scratch());
    }
    const bool something = gossip_.advance();
    if (!gossip_.complete()) return something ? Advance::kSomething : Advance::kNothing;
    std::byte* to = out_;
    for (int member = 0; member < members(); ++member) {
      const std::size_t bytes = gossip_.blockBytes(member);
      if (bytes > 0) std::memcpy(to, gossip_.block(member), bytes);
      to += bytes;
    }
    return Advance::kDone;
  }

 private:
  const std::byte* const in_;
  std::byte* const out_;
  Gossip gossip_;
  bool begun_ = false;
};

}  // namespace

OperationPtr makeSmallAllreduce(Context& context, Elements elements, Algorithm algorithm) {
  return std::make_unique<SmallAllreduce>(context, std::move(elements), algorithm);
}

OperationPtr makeSmallAllgather(Context& context, const void* in, void* out,
                                std::span<const std::size_t> bytes, Algorithm algorithm) {
  return std::make_unique<SmallAllgather>(context, in, out, bytes, algorithm);
}

OperationPtr makeBarrier(Context& context, Algorithm algorithm) {
  return std::make_unique<SmallAllgather>(context, nullptr, nullptr, everybody(context, 0),
                                          algorithm);
}

}  // namespace farandole::collective::link
