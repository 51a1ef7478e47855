// A rank that calls the engine itself, without names, plans and control.
#include <cstdio>

#include "bench/engine_driver.h"
#include "bench/memory_bound.h"
#include "bench/rank_side.h"
#include "bench/rank_work.h"

namespace farandole::bench {
namespace {

class EngineRank : public RankWork {
 public:
  EngineRank(EngineDriver& driver, int rank, int size)
      : RankWork(rank, size,
                 {[&driver](std::size_t bytes) {
                    return driver.neighbourhood().arena().allocate(bytes);
                  },
                  [&driver](void* memory) { driver.neighbourhood().arena().free(memory); }}),
        driver_(driver) {}

 private:
  Status barrier() override { return driver_.finish(driver_.communicator().barrier()); }

  Operation collective(const Job& job, const Layout& layout, void* in, void* out) override {
    return [this, &job, &layout, in, out] { return driver_.finish(begin(job, layout, in, out)); };
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

  // All tensors are pieces of one operation.
  Operation model(const Job& job, const std::vector<Tensor>& tensors) override {
    pieces_.clear();
    for (const Tensor& tensor : tensors) {
      pieces_.push_back({tensor.data, tensor.data, tensor.count});
    }
    return [this, &job] {
      return driver_.finish(driver_.communicator().allreduce(pieces_, job.dtype, job.op, {}));
    };
  }

  Result<double> bound(const Job& job) override { return memoryBound(job, driver_, buffers()); }

  EngineDriver& driver_;
  std::vector<collective::Piece> pieces_;
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
