// The ranks of a machine in one process, for tests that decide themselves what happens in which
// order.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <vector>

#include "machine/neighbourhood.h"

namespace farandole::testing {

inline UniqueFd ownPidfd() {
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
}

// As each of them sees the others.
inline std::vector<std::unique_ptr<machine::Neighbourhood>> neighboursInOneProcess(
    int ranks, std::size_t arenaBytes = std::size_t{64} << 20) {
  std::vector<std::unique_ptr<machine::Arena>> arenas;
  for (int i = 0; i < ranks; ++i)
    arenas.push_back(std::move(machine::Arena::create(arenaBytes)).value());
  std::vector<std::vector<UniqueFd>> descriptors(arenas.size());
  for (auto& each : descriptors) {
    for (const auto& arena : arenas) each.emplace_back(::dup(arena->fd()));
  }
  std::vector<std::unique_ptr<machine::Neighbourhood>> neighbours;
  for (int i = 0; i < ranks; ++i) {
    const auto at = static_cast<std::size_t>(i);
    std::vector<UniqueFd> pidfds;
    for (int j = 0; j < ranks; ++j) pidfds.push_back(ownPidfd());
    neighbours.push_back(
        std::move(machine::Neighbourhood::create(std::move(arenas[at]), i, /*epoch=*/1,
                                                 std::move(descriptors[at]), std::move(pidfds),
                                                 Deadline::after(std::chrono::seconds(20))))
            .value());
  }
  return neighbours;
}

}  // namespace farandole::testing
