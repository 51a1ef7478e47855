// ProcessSet: some of the ranks, with collectives of their own.
#pragma once

#include <farandole.h>
#include <farandole/error.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace farandole {
inline namespace v1 {

inline constexpr farandole_set kWorld = 0;

// Owns a set; move-only. Making one is collective over its members; every rank must make the same
// sets in the same order, as ids count calls. A rank that is not a member gets a set in which it is
// not included, and may not use it for operations. Overlapping sets never block each other.
class ProcessSet {
 public:
  explicit ProcessSet(const std::vector<std::int32_t>& ranks) {
    detail::check(farandole_add_set(ranks.data(), static_cast<std::int32_t>(ranks.size()), &id_));
  }
  ProcessSet(ProcessSet&& other) noexcept : id_(std::exchange(other.id_, kWorld)) {}
  ProcessSet& operator=(ProcessSet&& other) noexcept {
    std::swap(id_, other.id_);
    return *this;
  }
  ProcessSet(const ProcessSet&) = delete;
  ProcessSet& operator=(const ProcessSet&) = delete;
  // Operations still in flight keep the set until shutdown.
  ~ProcessSet() {
    if (id_ != kWorld) farandole_remove_set(id_);
  }

  farandole_set id() const noexcept { return id_; }
  operator farandole_set() const noexcept { return id_; }  // NOLINT(google-explicit-constructor)
  int size() const { return farandole_set_size(id_); }
  // This rank's place in the set, or -1.
  int rank() const { return farandole_set_rank(id_); }
  bool included() const { return rank() >= 0; }
  // Global ranks, in the set's order.
  std::vector<std::int32_t> ranks() const {
    const std::int32_t count = size();
    std::vector<std::int32_t> result(count > 0 ? static_cast<std::size_t>(count) : 0);
    detail::check(farandole_set_ranks(id_, result.data(), count));
    return result;
  }

 private:
  farandole_set id_ = kWorld;
};

}  // namespace v1
}  // namespace farandole
