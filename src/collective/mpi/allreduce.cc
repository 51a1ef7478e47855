#include <algorithm>

#include "collective/local.h"
#include "collective/mpi/choose.h"
#include "collective/mpi/chunked.h"
#include "collective/mpi/operations.h"
#include "collective/mpi/process.h"

namespace farandole::collective::mpi {
namespace {

class NativeAllreduce final : public ChunkedOperation {
 public:
  NativeAllreduce(MpiContext& shared, std::span<const Piece> pieces, const Reduction& reduction,
                  const NativeReduction& native)
      : ChunkedOperation(shared, "allreduce", pieces, sizeOf(reduction.dtype)),
        reduction_(reduction),
        native_(native) {}

 protected:
  // In place always: MPI wants all members to do the same, and only some may have in == out.
  std::size_t begin(Step& step) override {
    const Chunk& part = chunk(step);
    std::byte* data = nullptr;
    if (packed(part)) {
      if (!takeScratch(step, bytes(part.count))) return 0;
      data = step.scratch.data();
      pack(part, data, reduction_, before(reduction_.scale));
    } else {
      data = out(part);
      scaledCopy(data, in(part), part.count, reduction_, before(reduction_.scale));
    }
    check(mpiStatus(
        MPI_Iallreduce(MPI_IN_PLACE, data, static_cast<int>(part.count * native_.perElement),
                       native_.type, native_.op, comm(), step.requests.add()),
        "MPI_Iallreduce"));
    return bytes(part.count);
  }

  bool next(Step& step, Budget& budget) override {
    const Chunk& part = chunk(step);
    const Scale rest = after(reduction_.scale);
    if (packed(part)) {
      unpack(part, step.scratch.data(), reduction_, rest);
    } else {
      scaledCopy(out(part), out(part), part.count, reduction_, rest);
    }
    if (packed(part) || !rest.identity()) budget.charge(bytes(part.count));
    return true;
  }

 private:
  const Reduction reduction_;
  const NativeReduction native_;
};

class GatheredAllreduce final : public ChunkedOperation {
 public:
  GatheredAllreduce(MpiContext& shared, std::span<const Piece> pieces, const Reduction& reduction)
      : ChunkedOperation(shared, "allreduce", pieces, sizeOf(reduction.dtype)),
        reduction_(reduction) {}

 protected:
  std::size_t begin(Step& step) override {
    const Chunk& part = chunk(step);
    const std::size_t each = bytes(part.count);
    if (!takeScratch(step, each * static_cast<std::size_t>(members()))) return 0;
    std::byte* const mine = step.scratch.data() + each * static_cast<std::size_t>(me());
    pack(part, mine, reduction_, Scale{});
    check(mpiStatus(MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, step.scratch.data(),
                                   static_cast<int>(each), MPI_BYTE, comm(), step.requests.add()),
                    "MPI_Iallgather"));
    return each;
  }

  bool next(Step& step, Budget& budget) override {
    const Chunk& part = chunk(step);
    const std::size_t each = bytes(part.count);
    std::vector<const void*> sources(static_cast<std::size_t>(members()));
    segments().forEach(
        part.begin, part.begin + part.count,
        [&](std::size_t piece, std::int64_t offset, std::int64_t count, std::int64_t done) {
          for (std::size_t i = 0; i < sources.size(); ++i) {
            sources[i] = step.scratch.data() + i * each + bytes(done);
          }
          void* const to = segments().out(piece, offset);
          reduce(std::span(&to, 1), sources, count, reduction_.dtype, reduction_.op,
                 reduction_.scale, Store::kCached);
        });
    budget.charge(each * sources.size());
    return true;
  }

 private:
  const Reduction reduction_;
};

class ExchangeAllreduce final : public ChunkedOperation {
 public:
  ExchangeAllreduce(MpiContext& shared, std::span<const Piece> pieces, const Reduction& reduction)
      : ChunkedOperation(shared, "allreduce", pieces, sizeOf(reduction.dtype)),
        reduction_(reduction) {}

 protected:
  // Phase 0: parts to those who reduce them. Phase 1: the results to all.
  std::size_t begin(Step& step) override {
    const Chunk& part = chunk(step);
    // Others' versions of my part, and the chunk itself if it must be packed.
    const std::size_t foreign = bytes(mine(part)) * static_cast<std::size_t>(members() - 1);
    const std::size_t own = packed(part) ? bytes(part.count) : 0;
    if (!takeScratch(step, own + foreign)) return 0;
    if (packed(part)) pack(part, step.scratch.data(), reduction_, Scale{});
    const std::byte* const from = packed(part) ? step.scratch.data() : in(part);
    std::byte* to = step.scratch.data() + own;
    for (int i = 1; i < members(); ++i) {
      const int source = (me() - i + members()) % members();
      if (!check(postReceive(step.requests, to + bytes(mine(part)) * slot(source),
                             bytes(mine(part)), source, kTagCollective, comm()))) {
        return own;
      }
    }
    for (int i = 1; i < members(); ++i) {
      const int target = (me() + i) % members();
      const std::int64_t first = boundary(part, target);
      if (!check(postSend(step.requests, from + bytes(first),
                          bytes(boundary(part, target + 1) - first), target, kTagCollective,
                          comm()))) {
        return own;
      }
    }
    return own;
  }

  bool next(Step& step, Budget& budget) override {
    const Chunk& part = chunk(step);
    if (step.phase == 0) {
      reduceMine(step);
      budget.charge(bytes(mine(part)) * static_cast<std::size_t>(members()));
      share(step);
      return false;
    }
    if (packed(part)) {
      unpack(part, step.scratch.data(), reduction_, Scale{});
      budget.charge(bytes(part.count));
    }
    return true;
  }

 private:
  // Where member i's part of a chunk begins.
  std::int64_t boundary(const Chunk& part, int i) const {
    if (i >= members()) return part.count;
    return part.count / members() * i + std::min<std::int64_t>(i, part.count % members());
  }
  std::int64_t mine(const Chunk& part) const {
    return boundary(part, me() + 1) - boundary(part, me());
  }
  std::size_t slot(int source) const {
    return static_cast<std::size_t>(source < me() ? source : source - 1);
  }

  void reduceMine(Step& step) {
    const Chunk& part = chunk(step);
    const std::size_t at = bytes(boundary(part, me()));
    const std::size_t each = bytes(mine(part));
    const std::byte* const foreign = step.scratch.data() + (packed(part) ? bytes(part.count) : 0);
    const std::byte* const own = packed(part) ? step.scratch.data() : in(part);
    std::vector<const void*> sources;
    for (int i = 0; i < members(); ++i) {
      sources.push_back(i == me() ? own + at : foreign + each * slot(i));
    }
    void* const to = (packed(part) ? step.scratch.data() : out(part)) + at;
    if (each == 0) return;
    reduce(std::span(&to, 1), sources, mine(part), reduction_.dtype, reduction_.op,
           reduction_.scale, Store::kCached);
  }

  void share(Step& step) {
    const Chunk& part = chunk(step);
    std::byte* const data = packed(part) ? step.scratch.data() : out(part);
    for (int i = 1; i < members(); ++i) {
      const int source = (me() - i + members()) % members();
      const std::int64_t first = boundary(part, source);
      if (!check(postReceive(step.requests, data + bytes(first),
                             bytes(boundary(part, source + 1) - first), source, kTagShare,
                             comm()))) {
        return;
      }
    }
    for (int i = 1; i < members(); ++i) {
      if (!check(postSend(step.requests, data + bytes(boundary(part, me())), bytes(mine(part)),
                          (me() + i) % members(), kTagShare, comm()))) {
        return;
      }
    }
  }

  const Reduction reduction_;
};

class Broadcast final : public ChunkedOperation {
 public:
  Broadcast(MpiContext& shared, std::span<const Piece> pieces, DType dtype, int root)
      : ChunkedOperation(shared, "broadcast", pieces, sizeOf(dtype)),
        plain_{dtype, {}, {}},
        root_(root) {}

 protected:
  std::size_t begin(Step& step) override {
    const Chunk& part = chunk(step);
    const bool sends = me() == root_;
    std::byte* data = nullptr;
    if (packed(part)) {
      if (!takeScratch(step, bytes(part.count))) return 0;
      data = step.scratch.data();
      if (sends) pack(part, data, plain_, Scale{});
    } else {
      // MPI only reads the root's.
      data = sends ? const_cast<std::byte*>(in(part)) : out(part);
    }
    check(mpiStatus(MPI_Ibcast(data, static_cast<int>(bytes(part.count)), MPI_BYTE, root_, comm(),
                               step.requests.add()),
                    "MPI_Ibcast"));
    return packed(part) && sends ? bytes(part.count) : 0;
  }

  bool next(Step& step, Budget& budget) override {
    const Chunk& part = chunk(step);
    if (packed(part)) {
      unpack(part, step.scratch.data(), plain_, Scale{});
      budget.charge(bytes(part.count));
    } else if (me() == root_ && in(part) != out(part)) {
      scaledCopy(out(part), in(part), part.count, plain_, Scale{});
      budget.charge(bytes(part.count));
    }
    return true;
  }

 private:
  const Reduction plain_;
  const int root_;
};

}  // namespace

OperationPtr makeAllreduce(MpiContext& context, std::span<const Piece> pieces,
                           const Reduction& reduction) {
  std::int64_t total = 0;
  for (const Piece& piece : pieces) total += piece.count;
  const std::size_t bytes = static_cast<std::size_t>(total) * sizeOf(reduction.dtype);
  switch (chooseAllreduce(reduction, bytes, context.size, context.nativeFrom)) {
    case Algorithm::kLocal:
      return std::make_unique<LocalReduction<MpiOperation>>(pieces, reduction, context,
                                                            "allreduce");
    case Algorithm::kNative:
      return std::make_unique<NativeAllreduce>(context, pieces, reduction,
                                               nativeReduction(reduction));
    case Algorithm::kGathered:
      return std::make_unique<GatheredAllreduce>(context, pieces, reduction);
    case Algorithm::kExchange: break;
  }
  return std::make_unique<ExchangeAllreduce>(context, pieces, reduction);
}

OperationPtr makeBroadcast(MpiContext& context, std::span<const Piece> pieces, DType dtype,
                           int root) {
  return std::make_unique<Broadcast>(context, pieces, dtype, root);
}

}  // namespace farandole::collective::mpi
