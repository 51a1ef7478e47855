// ProcessSet: some of the ranks, with operations of their own.
#pragma once

#include <farandole.h>
#include <farandole/error.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace farandole {
inline namespace v1 {

// Names a process set in Options.
enum class ProcessSetId : std::int32_t {};

// The set of all ranks of the job.
inline constexpr ProcessSetId kWorld{0};

// Owns a process set; move-only.
//
// The constructor is collective over the members. Ids count the calls on a rank, so all ranks must
// make the same sets in the same order. A rank that is not a member gets a set in which it is not
// included, and which it may not use for operations. Overlapping sets never block each other.
class ProcessSet {
 public:
  // The global ranks of the members, in the order that they have in the set.
  explicit ProcessSet(const std::vector<std::int32_t>& ranks) {
    detail::check(farandole_add_set(ranks.data(), static_cast<std::int32_t>(ranks.size()), &id_));
  }
  ProcessSet(ProcessSet&& other) noexcept : id_(std::exchange(other.id_, 0)) {}
  ProcessSet& operator=(ProcessSet&& other) noexcept {
    std::swap(id_, other.id_);
    return *this;
  }
  ProcessSet(const ProcessSet&) = delete;
  ProcessSet& operator=(const ProcessSet&) = delete;
  // Removes the set on this rank. If operations of it are in flight, it stays until shutdown.
  ~ProcessSet() {
    if (id_ != 0) farandole_remove_set(id_);
  }

  ProcessSetId id() const noexcept { return ProcessSetId{id_}; }
  // Lets a set be given as Options::set.
  operator ProcessSetId() const noexcept { return id(); }  // NOLINT(google-explicit-constructor)
  int size() const { return farandole_set_size(id_); }
  // The index of this rank among the members, or -1.
  int rank() const { return farandole_set_rank(id_); }
  bool included() const { return rank() >= 0; }
  // The global ranks of the members, in the order of the set.
  std::vector<std::int32_t> ranks() const {
    const std::int32_t count = size();
    std::vector<std::int32_t> result(count > 0 ? static_cast<std::size_t>(count) : 0);
    detail::check(farandole_set_ranks(id_, result.data(), count));
    return result;
  }

 private:
  farandole_set id_ = 0;  // 0 after a move: the world, which nobody removes
};

}  // namespace v1
}  // namespace farandole
