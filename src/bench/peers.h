// The other libraries a benchmark compares with: what is installed, how to install it, how its
// ranks are started. Their programs are built by tools/peers into .peers/ of the project.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/status.h"
#include "bench/rank_group.h"

namespace farandole::bench {

struct Peer {
  std::string name;
  std::string what;     // "Open MPI, Debian's openmpi-bin"
  std::string missing;  // empty: available; else what was not found
  std::string install() const { return "tools/peers " + name; }
};

// FARANDOLE_PEERS, else .peers beside the build this program is part of, else in the current
// directory.
std::filesystem::path peersDirectory();
// openmpi, mpich, intelmpi, gloo, deepspeed. Looks on PATH and in the peers' directory.
std::vector<Peer> findPeers();
// Names separated by commas; "all"; or "available". An unknown name is an error.
Result<std::vector<Peer>> selectPeers(const std::string& names);
// For an available peer. The plan owns a directory that lives until the group has ended.
Result<LaunchPlan> planOf(const Peer& peer, int ranks, const std::vector<int>& processors);

}  // namespace farandole::bench
