// Layout: what one rank's input and output of a collective look like in a benchmark, what a checked
// operation is filled with, and what must come out. Shared by the engine's and the named path's
// ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/status.h"
#include "bench/job.h"

namespace farandole::bench {

// Immutable. Counts are elements; the root is rank 0.
class Layout {
 public:
  // For the collectives proper (not the models, not the bound).
  Layout(const Job& job, int rank, int size);

  std::int64_t inCount() const { return inCount_; }
  std::int64_t outCount() const { return outCount_; }
  std::size_t inBytes() const { return static_cast<std::size_t>(inCount_) * width_; }
  std::size_t outBytes() const { return static_cast<std::size_t>(outCount_) * width_; }
  bool inPlace() const { return inPlace_; }  // the output is the input's buffer
  // The job's elements split among the ranks as evenly as possible.
  const std::vector<std::int64_t>& parts() const { return parts_; }
  // What an alltoall receives from each rank.
  const std::vector<std::int64_t>& received() const { return received_; }

  void fill(void* in) const;
  Status verify(const void* out) const;

 private:
  std::int64_t begin(int rank) const;
  Status verifyGathered(const std::byte* out) const;

  Job job_;
  int rank_;
  int size_;
  std::size_t width_;
  std::vector<std::int64_t> parts_;
  std::vector<std::int64_t> received_;
  std::int64_t inCount_ = 0;
  std::int64_t outCount_ = 0;
  bool inPlace_ = false;
};

}  // namespace farandole::bench
