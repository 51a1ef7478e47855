// Members: who the ranks of a process set are, as messages and errors call them. Constant, so any
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
  // ranks: global, in the order of the set; hosts: theirs; me: the index of this rank.
  Members(std::vector<std::int32_t> ranks, std::vector<std::string> hosts, int me)
      : ranks_(std::move(ranks)), hosts_(std::move(hosts)), me_(me) {}

  int size() const { return static_cast<int>(ranks_.size()); }
  int me() const { return me_; }
  const std::vector<std::int32_t>& ranks() const { return ranks_; }
  std::int32_t rank(int member) const { return ranks_[static_cast<std::size_t>(member)]; }

  // "rank 3 on alpha".
  std::string name(int member) const;
  // "0, 2, 5", of many the first ones only.
  std::string list(std::span<const int> members) const;
  // A status that names that member, if there is such a one.
  Status fault(Code code, std::string text, int member) const;

 private:
  const std::vector<std::int32_t> ranks_;
  const std::vector<std::string> hosts_;
  const int me_;
};

}  // namespace farandole::conductor
