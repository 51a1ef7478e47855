// Members: the ranks of a process set, and what messages and errors call them. Constant, so any
// thread may ask.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"

namespace farandole::conductor {

class Members {
 public:
  // ranks: global ranks in the order of the set. hosts: where they are. me: the member index of
  // this rank.
  Members(std::vector<std::int32_t> ranks, std::vector<std::string> hosts, int me)
      : ranks_(std::move(ranks)), hosts_(std::move(hosts)), me_(me) {}

  int size() const { return static_cast<int>(ranks_.size()); }
  int me() const { return me_; }
  const std::vector<std::int32_t>& ranks() const { return ranks_; }
  std::int32_t rank(int member) const { return ranks_[static_cast<std::size_t>(member)]; }

  // For instance "rank 3 on alpha".
  std::string name(int member) const;
  // For instance "0, 2, 5". A long list is cut.
  std::string list(std::span<const int> members) const;
  // Returns a status that names that member, if there is one of that index.
  Status fault(Code code, std::string text, int member) const;

 private:
  const std::vector<std::int32_t> ranks_;
  const std::vector<std::string> hosts_;
  const int me_;
};

}  // namespace farandole::conductor
