#include "doctor/checks.h"

#include <algorithm>

namespace farandole::doctor {

int ranksOn(const CheckInput& input, std::size_t host) {
  const auto slotsOf = [&input](std::size_t i) { return std::max(1, input.hosts[i].slots); };
  if (input.ranks <= 0) return slotsOf(host);
  // One host without a number of slots takes them all, as it does for `farandole run`.
  if (input.hosts.size() == 1 && input.hosts[0].slots == 0) return input.ranks;
  int before = 0;
  for (std::size_t i = 0; i < host; ++i) before += slotsOf(i);
  return std::clamp(input.ranks - before, 0, slotsOf(host));
}

Findings checkAll(const CheckInput& input) {
  Findings all;
  for (auto* check : {checkInputs, checkMachines, checkNames, checkInterfaces, checkSoftware,
                      checkFiles, checkSshFolders, checkContainers, checkCpus, checkMemory,
                      checkDevices, checkClocks, checkSurroundings}) {
    Findings some = check(input);
    all.insert(all.end(), std::make_move_iterator(some.begin()),
               std::make_move_iterator(some.end()));
  }
  return all;
}

}  // namespace farandole::doctor
