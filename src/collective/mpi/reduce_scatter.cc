#include <algorithm>
#include <functional>
#include <vector>

#include "collective/mpi/choose.h"
#include "collective/mpi/chunked.h"
#include "collective/mpi/operations.h"
#include "collective/mpi/process.h"

namespace farandole::collective::mpi {
namespace {

// What a receiver takes from all others in one window.
constexpr std::size_t kWindowBytes = std::size_t{8} << 20;

class ReduceScatter final : public Pipeline {
 public:
  ReduceScatter(MpiContext& shared, std::string_view operation, const void* in, void* out,
                std::span<const std::int64_t> counts, const Reduction& reduction)
      : Pipeline(shared, operation),
        in_(static_cast<const std::byte*>(in)),
        out_(static_cast<std::byte*>(out)),
        counts_(counts.begin(), counts.end()),
        starts_(counts.size() + 1, 0),
        reduction_(reduction),
        element_(sizeOf(reduction.dtype)) {
    for (std::size_t i = 0; i < counts_.size(); ++i) starts_[i + 1] = starts_[i] + counts_[i];
    const std::size_t each = kWindowBytes / counts_.size() / element_;
    window_ = std::max<std::int64_t>(1024, static_cast<std::int64_t>(each));
    const std::int64_t most = *std::max_element(counts_.begin(), counts_.end());
    rounds_ = static_cast<std::size_t>((most + window_ - 1) / window_);
    aside_ = overlaps();
  }
  ~ReduceScatter() override { context().scratch.give(std::move(result_)); }

 protected:
  std::size_t steps() const override { return rounds_; }
  std::size_t allBytes() const override { return bytes(starts_.back()); }

  std::size_t begin(Step& step) override {
    if (aside_ && result_.data() == nullptr && !takeResult()) return 0;
    const std::size_t mine = bytes(length(index(me()), step));
    if (!takeScratch(step, mine * index(members() - 1))) return 0;
    for (int i = 1; i < members() && mine > 0; ++i) {
      const int source = (me() - i + members()) % members();
      if (!check(postReceive(step.requests, step.scratch.data() + mine * slot(source), mine, source,
                             kTagCollective, comm()))) {
        return 0;
      }
    }
    for (int i = 1; i < members(); ++i) {
      const int target = (me() + i) % members();
      const std::byte* from = in_ + bytes(starts_[index(target)] + offset(step));
      const std::int64_t count = length(index(target), step);
      if (count > 0 &&
          !check(postSend(step.requests, from, bytes(count), target, kTagCollective, comm()))) {
        return 0;
      }
    }
    return 0;
  }

  bool next(Step& step, Budget& budget) override {
    const std::int64_t count = length(index(me()), step);
    if (count == 0) return true;
    const std::size_t each = bytes(count);
    std::vector<const void*> sources;
    for (int i = 0; i < members(); ++i) {
      sources.push_back(i == me() ? in_ + bytes(starts_[index(me())] + offset(step))
                                  : step.scratch.data() + each * slot(i));
    }
    void* const to = (aside_ ? result_.data() : out_) + bytes(offset(step));
    reduce(std::span(&to, 1), sources, count, reduction_.dtype, reduction_.op, reduction_.scale,
           Store::kCached);
    budget.charge(each * index(members()));
    return true;
  }

  void finish() override {
    if (aside_ && result_.data() != nullptr) {
      copy(out_, result_.data(), bytes(counts_[index(me())]), Store::kCached);
    }
  }

 private:
  static std::size_t index(int member) { return static_cast<std::size_t>(member); }
  std::size_t bytes(std::int64_t count) const { return static_cast<std::size_t>(count) * element_; }
  std::size_t slot(int source) const { return index(source < me() ? source : source - 1); }
  std::int64_t offset(const Step& step) const {
    return static_cast<std::int64_t>(step.index) * window_;
  }
  std::int64_t length(std::size_t receiver, const Step& step) const {
    return std::clamp<std::int64_t>(counts_[receiver] - offset(step), 0, window_);
  }

  // An output inside the input would overwrite what is still to be sent, unless it is exactly the
  // part that is this member's own.
  bool overlaps() {
    const std::size_t size = bytes(counts_[index(me())]);
    if (size == 0) return false;
    const std::byte* const own = in_ + bytes(starts_[index(me())]);
    const std::less<const std::byte*> less;
    return own != out_ && less(out_, in_ + bytes(starts_.back())) && less(in_, out_ + size);
  }
  bool takeResult() {
    result_ = MpiOperation::takeScratch(bytes(counts_[index(me())]));
    return static_cast<bool>(result_);
  }

  const std::byte* const in_;
  std::byte* const out_;
  const std::vector<std::int64_t> counts_;
  std::vector<std::int64_t> starts_;
  const Reduction reduction_;
  const std::size_t element_;
  std::int64_t window_ = 1;
  std::size_t rounds_ = 0;
  bool aside_ = false;
  Scratch result_;
};

class NativeReduce final : public ChunkedOperation {
 public:
  NativeReduce(MpiContext& shared, const Piece& piece, const Reduction& reduction,
               const NativeReduction& native, int root)
      : ChunkedOperation(shared, "reduce", std::span(&piece, 1), sizeOf(reduction.dtype)),
        reduction_(reduction),
        native_(native),
        root_(root) {}

 protected:
  std::size_t begin(Step& step) override {
    const Chunk& part = chunk(step);
    const Scale first = before(reduction_.scale);
    const bool receives = me() == root_;
    const void* from = in(part);
    void* to = nullptr;
    if (receives) {
      to = out(part);
      scaledCopy(to, from, part.count, reduction_, first);
      from = MPI_IN_PLACE;
    } else if (!first.identity()) {
      if (!takeScratch(step, bytes(part.count))) return 0;
      scaledCopy(step.scratch.data(), from, part.count, reduction_, first);
      from = step.scratch.data();
    }
    check(mpiStatus(MPI_Ireduce(from, to, static_cast<int>(part.count * native_.perElement),
                                native_.type, native_.op, root_, comm(), step.requests.add()),
                    "MPI_Ireduce"));
    return bytes(part.count);
  }

  bool next(Step& step, Budget& budget) override {
    const Chunk& part = chunk(step);
    const Scale rest = after(reduction_.scale);
    if (me() != root_ || rest.identity()) return true;
    scaledCopy(out(part), out(part), part.count, reduction_, rest);
    budget.charge(bytes(part.count));
    return true;
  }

 private:
  const Reduction reduction_;
  const NativeReduction native_;
  const int root_;
};

}  // namespace

OperationPtr makeReduceScatter(MpiContext& context, const void* in, void* out,
                               std::span<const std::int64_t> counts, const Reduction& reduction) {
  return std::make_unique<ReduceScatter>(context, "reducescatter", in, out, counts, reduction);
}

OperationPtr makeReduce(MpiContext& context, const void* in, void* out, std::int64_t count,
                        const Reduction& reduction, int root) {
  if (nativeSize(context.size, context.nativeFrom) && mpiComputes(reduction)) {
    return std::make_unique<NativeReduce>(context, Piece{in, out, count}, reduction,
                                          nativeReduction(reduction), root);
  }
  std::vector<std::int64_t> counts(static_cast<std::size_t>(context.size), 0);
  counts[static_cast<std::size_t>(root)] = count;
  return std::make_unique<ReduceScatter>(context, "reduce", in, out, counts, reduction);
}

}  // namespace farandole::collective::mpi
