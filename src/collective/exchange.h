// Exchange: an operation on little data without an algorithm: every member sends what it has
// straight to those that need it, and does the rest alone, in the order of the members, with the
// kernels of base/reduce.h. One message each way is the fastest there is while the data is small
// and the members are few; beyond that it sends too much.
//
// An Exchange says who needs what and makes the result. It moves nothing itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/reduce.h"
#include "base/types.h"

namespace farandole::collective {

struct Exchange {
  enum class What { kAllreduce, kReduce, kBroadcast, kBarrier };

  static constexpr int kMostMembers = 16;
  // Whether sets of that size have exchanges at all.
  static bool serves(int members) { return members >= 2 && members <= kMostMembers; }
  // The most bytes of one member's data that may go this way.
  static std::int64_t mostBytes(int members);

  What what = What::kBarrier;
  DType dtype = DType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  Scale scale{};  // without the division of an average
  std::int64_t elements = 0;
  int root = 0;
  int members = 0;

  std::size_t bytes() const { return static_cast<std::size_t>(elements) * sizeOf(dtype); }
  // Whether `from` has data that `to` needs.
  bool needs(int from, int to) const;
  // The members that need data of `from`, itself apart: bit i is member i.
  std::uint32_t receiversOf(int from) const;
  // Whether that member gets a result.
  bool hasResult(int member) const;
  // The first member whose data for `me` has another size than it must have; -1: none.
  int wrongSize(std::span<const std::span<const std::byte>> data, int me) const;
  // The result, from what all members have sent; data[me] is one's own input. `out` may be the
  // input. The caller has looked at hasResult() and wrongSize().
  void combine(std::span<const std::span<const std::byte>> data, void* out) const;
};

}  // namespace farandole::collective
