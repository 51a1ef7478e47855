// RankWork: what a rank does for a job of the driver, whatever its operations are made of: memory,
// a check of the results, the timed loop. Single-threaded; all ranks do the same jobs in the same
// order.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/status.h"
#include "bench/buffers.h"
#include "bench/job.h"
#include "bench/layout.h"

namespace farandole::bench {

class RankWork {
 public:
  RankWork(int rank, int size, Buffers::Shared shared)
      : rank_(rank), size_(size), buffers_(std::move(shared)) {}
  virtual ~RankWork() = default;
  RankWork(const RankWork&) = delete;
  RankWork& operator=(const RankWork&) = delete;

  // Seconds per operation.
  Result<double> run(const Job& job);

 protected:
  using Operation = std::function<Status()>;
  // A gradient of a model, which is reduced in place.
  struct Tensor {
    void* data;
    std::int64_t count;
  };

  int rank() const { return rank_; }
  int size() const { return size_; }
  Buffers& buffers() { return buffers_; }

  virtual Status barrier() = 0;
  // The operation that the job names, and the reduction of all tensors of a model, in the order in
  // which backward produces them. The arguments outlive the operation, which is the only one then.
  virtual Operation collective(const Job& job, const Layout& layout, void* in, void* out) = 0;
  virtual Operation model(const Job& job, const std::vector<Tensor>& tensors) = 0;
  // Work::kBound.
  virtual Result<double> bound(const Job& job) = 0;

 private:
  Result<double> runCollective(const Job& job);
  Result<double> runModel(const Job& job);

  const int rank_;
  const int size_;
  Buffers buffers_;
};

}  // namespace farandole::bench
