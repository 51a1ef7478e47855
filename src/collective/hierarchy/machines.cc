#include "collective/hierarchy/machines.h"

#include <algorithm>

namespace farandole::collective::hierarchy {

Machines::Machines(std::vector<int> machineOf, int me) : machineOf_(std::move(machineOf)), me_(me) {
  const int members = static_cast<int>(machineOf_.size());
  if (me < 0 || me >= members) return;
  for (int member = 0; member < members; ++member) {
    const int machine = machineOf_[static_cast<std::size_t>(member)];
    if (machine < 0 || machine >= members) return;
    const auto index = static_cast<std::size_t>(machine);
    if (index >= membersOf_.size()) membersOf_.resize(index + 1);
    localOf_.push_back(static_cast<int>(membersOf_[index].size()));
    membersOf_[index].push_back(member);
  }
  slices_ = members;
  for (const std::vector<int>& machine : membersOf_) {
    slices_ = std::min(slices_, static_cast<int>(machine.size()));
  }
  valid_ = slices_ > 0;
}

std::int64_t splitAt(std::int64_t count, std::int64_t index, std::int64_t parts) {
  constexpr std::int64_t kUnit = 64;
  const std::int64_t even = count / parts + (count % parts != 0 ? 1 : 0);
  const std::int64_t size = (even + kUnit - 1) / kUnit * kUnit;
  // A part beyond the end is empty, at the end. There is no product that could overflow.
  return size == 0 || index > count / size ? count : std::min(count, index * size);
}

}  // namespace farandole::collective::hierarchy
