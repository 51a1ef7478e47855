#include "bench/layout.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "bench/pattern.h"

namespace farandole::bench {

Layout::Layout(const Job& job, int rank, int size)
    : job_(job), rank_(rank), size_(size), width_(sizeOf(job.dtype)) {
  const auto count = static_cast<std::int64_t>(std::max<std::size_t>(1, job.bytes / width_));
  for (int i = 0; i < size; ++i) parts_.push_back(count / size + (i < count % size ? 1 : 0));
  const std::int64_t mine = parts_[static_cast<std::size_t>(rank)];
  received_.assign(static_cast<std::size_t>(size), mine);
  switch (job.work) {
    case Work::kAllreduce:
    case Work::kBroadcast:
      inCount_ = outCount_ = count;
      inPlace_ = true;
      break;
    case Work::kAllgather:
    case Work::kGather:
      inCount_ = mine;
      outCount_ = count;
      break;
    case Work::kAlltoall:
      inCount_ = count;
      outCount_ = mine * size;
      break;
    case Work::kReducescatter:
    case Work::kScatter:
      inCount_ = count;
      outCount_ = mine;
      break;
    case Work::kReduce: inCount_ = outCount_ = count; break;
    case Work::kBarrier:
    case Work::kResnet50:
    case Work::kVgg16:
    case Work::kBound: break;
  }
}

std::int64_t Layout::begin(int rank) const {
  return std::accumulate(parts_.begin(), parts_.begin() + rank, std::int64_t{0});
}

void Layout::fill(void* in) const {
  if (job_.work == Work::kBroadcast && rank_ != 0) {
    std::memset(in, 0, inBytes());
  } else {
    Pattern::ofRank(job_.dtype, rank_).fill(in, inCount_);
  }
}

Status Layout::verify(const void* out) const {
  const Pattern reduced = Pattern::reduced(job_.dtype, job_.op, size_);
  const auto* bytes = static_cast<const std::byte*>(out);
  switch (job_.work) {
    case Work::kAllreduce: return reduced.verify(out, outCount_);
    case Work::kReduce: return rank_ == 0 ? reduced.verify(out, outCount_) : Status();
    case Work::kReducescatter: return reduced.verify(out, outCount_, begin(rank_));
    case Work::kBroadcast: return Pattern::ofRank(job_.dtype, 0).verify(out, outCount_);
    case Work::kScatter: return Pattern::ofRank(job_.dtype, 0).verify(out, outCount_, begin(rank_));
    case Work::kAllgather: return verifyGathered(bytes);
    case Work::kGather: return rank_ == 0 ? verifyGathered(bytes) : Status();
    case Work::kAlltoall:
      for (int from = 0; from < size_; ++from) {
        const std::int64_t mine = received_[0];
        FARANDOLE_RETURN_IF_ERROR(
            Pattern::ofRank(job_.dtype, from)
                .verify(bytes + static_cast<std::size_t>(from * mine) * width_, mine,
                        begin(rank_)));
      }
      return {};
    case Work::kBarrier:
    case Work::kResnet50:
    case Work::kVgg16:
    case Work::kBound: return {};
  }
  return {};
}

Status Layout::verifyGathered(const std::byte* out) const {
  for (int from = 0; from < size_; ++from) {
    FARANDOLE_RETURN_IF_ERROR(Pattern::ofRank(job_.dtype, from)
                                  .verify(out + static_cast<std::size_t>(begin(from)) * width_,
                                          parts_[static_cast<std::size_t>(from)]));
  }
  return {};
}

}  // namespace farandole::bench
