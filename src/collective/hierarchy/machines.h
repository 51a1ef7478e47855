// Machines: who of a set sits where. Constant after construction.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace farandole::collective::hierarchy {

class Machines {
 public:
  // machineOf: per member, 0 … without gaps (see valid()).
  Machines(std::vector<int> machineOf, int me);

  // False if machine numbers have gaps or are negative, or `me` is no member; then nothing else may
  // be asked.
  bool valid() const { return valid_; }
  int members() const { return static_cast<int>(machineOf_.size()); }
  int count() const { return static_cast<int>(membersOf_.size()); }
  int me() const { return me_; }
  int mine() const { return machineOf(me_); }
  int local() const { return localOf(me_); }  // this member's place on its machine
  // The smallest number of members on any machine.
  int slices() const { return slices_; }
  bool carries() const { return local() < slices_; }

  int machineOf(int member) const { return machineOf_[static_cast<std::size_t>(member)]; }
  int localOf(int member) const { return localOf_[static_cast<std::size_t>(member)]; }
  // The members of a machine, in ascending order.
  std::span<const int> membersOf(int machine) const {
    return membersOf_[static_cast<std::size_t>(machine)];
  }
  std::span<const int> neighbours() const { return membersOf(mine()); }

 private:
  std::vector<int> machineOf_;
  std::vector<int> localOf_;
  std::vector<std::vector<int>> membersOf_;
  int me_ = 0;
  int slices_ = 0;
  bool valid_ = false;
};

// Where part `index` of `parts` of count elements begins: the first parts are equal, all begin at
// multiples of 64 elements, and the last may be short or empty. Part 0 is the longest.
std::int64_t splitAt(std::int64_t count, std::int64_t index, std::int64_t parts);

}  // namespace farandole::collective::hierarchy
