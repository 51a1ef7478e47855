#include <array>
#include <optional>

#include "collective/segments.h"
#include "collective/shm/allreduce_direct.h"
#include "collective/shm/allreduce_exchange.h"
#include "collective/shm/gate.h"
#include "collective/shm/operations.h"
#include "collective/shm/stopwatch.h"

namespace farandole::collective::shm {
namespace {

// Up to here everybody publishes everything, and the tuner is not asked.
constexpr std::size_t kAlwaysOneShot = 2048;

// The data travels in the cache line of the flag: one line each way.
class TinyAllreduce final : public ShmOperation {
 public:
  TinyAllreduce(ShmContext& shared, Segments segments, const Reduction& reduction)
      : ShmOperation(shared), segments_(std::move(segments)), reduction_(reduction) {}

 protected:
  Advance advance(Budget&) override {
    const bool first = !begun_;
    if (first) begin();
    for (; arrived_ < board().size(); ++arrived_) {
      if (arrived_ == board().me()) continue;
      if (board().readTiny(arrived_, number_) == nullptr) {
        return first ? Advance::kSomething : Advance::kNothing;
      }
    }
    board().noteAllBegun();
    finish();
    return Advance::kDone;
  }

 private:
  void begin() {
    begun_ = true;
    segments_.gather(0, segments_.total(), mine_.data(), Store::kCached);
    number_ = board().nextTiny();
    board().writeTiny(number_, std::span(mine_.data(), segments_.bytes()));
  }
  void finish() {
    if (segments_.total() == 0) return;
    std::array<const void*, machine::kMaxLocalRanks> sources;
    for (int member = 0; member < board().size(); ++member) {
      sources[static_cast<std::size_t>(member)] =
          member == board().me() ? mine_.data() : board().tinyPayload(member, number_);
    }
    alignas(16) std::array<std::byte, TinyLine::kPayload> result;
    void* const destination = result.data();
    const FpModeGuard guard;
    reduce(std::span(&destination, 1),
           std::span(sources.data(), static_cast<std::size_t>(board().size())), segments_.total(),
           reduction_.dtype, reduction_.op, reduction_.scale, Store::kCached);
    segments_.scatter(0, segments_.total(), result.data(), Store::kCached);
  }

  Segments segments_;
  Reduction reduction_;
  bool begun_ = false;
  std::uint64_t number_ = 0;
  int arrived_ = 0;
  alignas(16) std::array<std::byte, TinyLine::kPayload> mine_{};
};

// Everybody publishes everything and reduces everything: one flag each way.
class OneShotAllreduce final : public ShmOperation {
 public:
  OneShotAllreduce(ShmContext& shared, Segments segments, const Reduction& reduction,
                   std::optional<Tuner::Choice> choice)
      : ShmOperation(shared),
        segments_(std::move(segments)),
        reduction_(reduction),
        choice_(choice),
        watch_(choice && choice->measured) {}

 protected:
  Advance advance(Budget&) override {
    watch_.enter();
    const Advance result = attempt();
    if (result != Advance::kDone) watch_.leave(result == Advance::kSomething);
    return result;
  }

 private:
  Advance attempt() {
    const std::uint64_t step = board().base();
    bool something = false;
    if (!contributed_) {
      if (!board().mayContribute(step)) return Advance::kNothing;
      watch_.begin();
      segments_.gather(0, segments_.total(), board().contribution(board().me(), step),
                       Store::kCached);
      board().contribute(step + 1);
      contributed_ = something = true;
    }
    if (!board().allContributed(step)) return something ? Advance::kSomething : Advance::kNothing;
    watch_.everybodyArrived();
    reduceAll(step);
    board().finish(step + 1);
    if (choice_) context().tuner.end(*choice_, /*wasDirect=*/false, watch_.elapsed());
    return Advance::kDone;
  }

  void reduceAll(std::uint64_t step) {
    const FpModeGuard guard;
    std::array<const void*, machine::kMaxLocalRanks> sources;
    const auto members = static_cast<std::size_t>(board().size());
    segments_.forEach(
        0, segments_.total(),
        [&](std::size_t piece, std::int64_t offset, std::int64_t count, std::int64_t done) {
          const std::size_t shift = static_cast<std::size_t>(done) * segments_.elementBytes();
          for (int member = 0; member < board().size(); ++member) {
            sources[static_cast<std::size_t>(member)] =
                member == board().me() ? segments_.in(piece, offset)
                                       : board().contribution(member, step) + shift;
          }
          void* const destination = segments_.out(piece, offset);
          reduce(std::span(&destination, 1), std::span(sources.data(), members), count,
                 reduction_.dtype, reduction_.op, reduction_.scale, Store::kCached);
        });
  }

  Segments segments_;
  Reduction reduction_;
  std::optional<Tuner::Choice> choice_;
  Stopwatch watch_;
  bool contributed_ = false;
};

// A gate, then in place where all memory is shared, through slots where it is not.
class LargeAllreduce final : public ShmOperation {
 public:
  LargeAllreduce(ShmContext& shared, Segments segments, const Reduction& reduction,
                 const Tuner::Choice& choice)
      : ShmOperation(shared),
        segments_(std::move(segments)),
        reduction_(reduction),
        choice_(choice),
        watch_(choice.measured),
        gate_(GateKind::kAllreduce, segments_.bytes()) {}

 protected:
  Advance advance(Budget& budget) override {
    watch_.enter();
    const Stage before = stage_;
    if (stage_ == Stage::kBegin) begin();
    if (stage_ == Stage::kGate) passGate();
    Advance result = Advance::kNothing;
    if (stage_ == Stage::kExchange) result = advanceExchange(budget);
    if (stage_ == Stage::kDirect) result = advanceDirect(budget);
    if (result == Advance::kNothing && stage_ != before) result = Advance::kSomething;
    if (result != Advance::kDone) watch_.leave(result == Advance::kSomething);
    return result;
  }

 private:
  enum class Stage { kBegin, kGate, kExchange, kDirect };

  void begin() {
    const std::uint64_t step = board().base();
    if (!board().mayContribute(step)) return;
    watch_.begin();
    if (gate_.write(board(), step, AllreduceDirect::describe(board(), segments_))) {
      board().contribute(step + 1);
      direct_.emplace(board(), segments_, reduction_, context().tuner.directStore(choice_), step);
      stage_ = Stage::kGate;
    } else {
      startExchange();
    }
  }

  // Reads the notes one by one; the first that is not shared decides.
  void passGate() {
    const std::uint64_t step = board().base();
    for (; notes_ < board().size(); ++notes_) {
      if (!board().contributed(notes_, step)) return;
      Result<GateNote> note = gate_.read(board(), step, notes_);
      if (!note.ok()) return failForGood(note.status());
      if (!note->shared) return startExchange();
      if (Status taken = direct_->take(notes_, *note); !taken.ok()) return failForGood(taken);
    }
    watch_.everybodyArrived();
    stage_ = Stage::kDirect;
  }

  void startExchange() {
    exchange_.emplace(board(), segments_, reduction_, context().tuner.layout(choice_),
                      board().base() + 1, watch_);
    stage_ = Stage::kExchange;
  }

  Advance advanceExchange(Budget& budget) {
    const Advance result = exchange_->advance(budget);
    if (result == Advance::kDone) end(exchange_->end(), /*wasDirect=*/false);
    return result;
  }

  Advance advanceDirect(Budget& budget) {
    const Advance result = direct_->advance(budget);
    if (result == Advance::kDone) {
      context().zeroCopyBytes += segments_.bytes();
      end(direct_->end(), /*wasDirect=*/true);
    }
    return result;
  }

  void end(std::uint64_t step, bool wasDirect) {
    board().finish(step);
    context().tuner.end(choice_, wasDirect, watch_.elapsed());
  }

  Segments segments_;
  Reduction reduction_;
  Tuner::Choice choice_;
  Stopwatch watch_;
  Gate gate_;
  Stage stage_ = Stage::kBegin;
  int notes_ = 0;
  std::optional<AllreduceExchange> exchange_;
  std::optional<AllreduceDirect> direct_;
};

}  // namespace

OperationPtr makeAllreduce(ShmContext& context, std::span<const Piece> pieces,
                           const Reduction& reduction) {
  Segments segments(pieces, sizeOf(reduction.dtype));
  const std::size_t bytes = segments.bytes();
  if (bytes <= TinyLine::kPayload) {
    return std::make_unique<TinyAllreduce>(context, std::move(segments), reduction);
  }
  if (bytes <= kAlwaysOneShot) {
    return std::make_unique<OneShotAllreduce>(context, std::move(segments), reduction,
                                              std::nullopt);
  }
  const Tuner::Choice choice = context.tuner.begin(bytes);
  if (context.tuner.layout(choice).oneShot) {
    return std::make_unique<OneShotAllreduce>(context, std::move(segments), reduction, choice);
  }
  return std::make_unique<LargeAllreduce>(context, std::move(segments), reduction, choice);
}

OperationPtr makeBarrier(ShmContext& context) {
  return std::make_unique<TinyAllreduce>(context, Segments(nullptr, nullptr, 0), Reduction{});
}

}  // namespace farandole::collective::shm
