#include "bench/engine_rank.h"

#include <cstdio>
#include <cstring>

#include "bench/buffers.h"
#include "bench/engine_driver.h"
#include "bench/layout.h"
#include "bench/memory_bound.h"
#include "bench/model_shapes.h"
#include "bench/pattern.h"
#include "bench/rank_side.h"

namespace farandole::bench {
namespace {

class EngineRank {
 public:
  EngineRank(EngineDriver& driver, int rank, int size)
      : driver_(driver),
        rank_(rank),
        size_(size),
        buffers_(
            {[this](std::size_t bytes) { return driver_.neighbourhood().arena().allocate(bytes); },
             [this](void* memory) { driver_.neighbourhood().arena().free(memory); }}) {}

  Result<double> run(const Job& job) {
    switch (job.work) {
      case Work::kBound: return memoryBound(job, driver_, buffers_);
      case Work::kResnet50:
      case Work::kVgg16: return runModel(job);
      default: return runCollective(job);
    }
  }

 private:
  Result<double> runCollective(const Job& job) {
    const Layout layout(job, rank_, size_);
    auto in = buffers_.get(job.memory, Buffers::kIn, layout.inBytes());
    if (!in.ok()) return in.status();
    auto out = layout.inPlace() ? in : buffers_.get(job.memory, Buffers::kOut, layout.outBytes());
    if (!out.ok()) return out.status();
    const auto operation = [&] { return driver_.finish(begin(job, layout, *in, *out)); };
    if (job.check) {
      layout.fill(*in);
      // Nobody may write into a buffer that its owner is still filling.
      FARANDOLE_RETURN_IF_ERROR(barrier());
      FARANDOLE_RETURN_IF_ERROR(operation());
      FARANDOLE_RETURN_IF_ERROR(layout.verify(*out));
      FARANDOLE_RETURN_IF_ERROR(barrier());
    }
    std::memset(*in, 0, layout.inBytes());
    FARANDOLE_RETURN_IF_ERROR(barrier());
    return timeLoop(job, operation, [this] { return barrier(); });
  }

  collective::OperationPtr begin(const Job& job, const Layout& layout, void* in, void* out) {
    collective::Communicator& c = driver_.communicator();
    const collective::Piece piece{in, out, layout.inCount()};
    switch (job.work) {
      case Work::kBroadcast: return c.broadcast({&piece, 1}, job.dtype, 0);
      case Work::kAllgather: return c.allgather(in, out, layout.parts(), job.dtype);
      case Work::kAlltoall:
        return c.alltoall(in, layout.parts(), out, layout.received(), job.dtype);
      case Work::kReducescatter:
        return c.reducescatter(in, out, layout.parts(), job.dtype, job.op, {});
      case Work::kReduce: return c.reduce(in, out, layout.inCount(), job.dtype, job.op, {}, 0);
      case Work::kGather: return c.gather(in, out, layout.parts(), job.dtype, 0);
      case Work::kScatter: return c.scatter(in, out, layout.parts(), job.dtype, 0);
      case Work::kBarrier: return c.barrier();
      default: return c.allreduce({&piece, 1}, job.dtype, job.op, {});
    }
  }

  // All tensors of a model as pieces of one operation, in the order backward produces them.
  Result<double> runModel(const Job& job) {
    const std::size_t width = sizeOf(job.dtype);
    auto data = buffers_.get(job.memory, Buffers::kIn,
                             static_cast<std::size_t>(modelElements(job.work)) * width);
    if (!data.ok()) return data.status();
    std::vector<collective::Piece> pieces;
    auto* at = static_cast<std::byte*>(*data);
    for (const std::int64_t count : modelTensors(job.work)) {
      pieces.insert(pieces.begin(), {at, at, count});
      at += static_cast<std::size_t>(count) * width;
    }
    const auto operation = [&] {
      return driver_.finish(driver_.communicator().allreduce(pieces, job.dtype, job.op, {}));
    };
    if (job.check) {
      const Pattern mine = Pattern::ofRank(job.dtype, rank_);
      const Pattern expected = Pattern::reduced(job.dtype, job.op, size_);
      for (const collective::Piece& piece : pieces) mine.fill(piece.out, piece.count);
      FARANDOLE_RETURN_IF_ERROR(barrier());
      FARANDOLE_RETURN_IF_ERROR(operation());
      for (const collective::Piece& piece : pieces) {
        FARANDOLE_RETURN_IF_ERROR(expected.verify(piece.out, piece.count));
      }
      FARANDOLE_RETURN_IF_ERROR(barrier());
    }
    for (const collective::Piece& piece : pieces) {
      std::memset(piece.out, 0, static_cast<std::size_t>(piece.count) * width);
    }
    FARANDOLE_RETURN_IF_ERROR(barrier());
    return timeLoop(job, operation, [this] { return barrier(); });
  }

  Status barrier() { return driver_.finish(driver_.communicator().barrier()); }

  EngineDriver& driver_;
  int rank_;
  int size_;
  Buffers buffers_;
};

}  // namespace

int engineRankMain(int rank, int size) {
  auto wire = RankWire::connect(rank, size);
  if (!wire.ok()) {
    std::fprintf(stderr, "%s\n", wire.status().message().c_str());
    return 1;
  }
  auto driver = EngineDriver::create(
      rank, size, [&wire](const std::string& text) { return (*wire)->exchange(text); });
  if (!driver.ok()) {
    (*wire)->complain(driver.status());
    return 1;
  }
  EngineRank ranks(**driver, rank, size);
  const Status status = (*wire)->serve([&ranks](const Job& job) { return ranks.run(job); });
  return status.ok() ? 0 : 1;
}

}  // namespace farandole::bench
