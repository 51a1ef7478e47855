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
  std::string what;        // "Open MPI, Debian's openmpi-bin"
  std::string missing;     // empty: available; else what was not found
  bool onRequest = false;  // takes part only if it is named
  std::string install() const { return "tools/peers " + name.substr(0, name.find('-')); }
};

// FARANDOLE_PEERS, else .peers beside the build this program is part of, else in the current
// directory.
std::filesystem::path peersDirectory();
// openmpi, mpich, intelmpi, gloo, deepspeed, openmpi-ring. Looks on PATH and in the peers'
// directory.
std::vector<Peer> findPeers();
// Names separated by commas; "all" or "available" of those that take part unasked. An unknown name
// is an error.
Result<std::vector<Peer>> selectPeers(const std::string& names);
// What makes Open MPI's allreduce a ring, for comparisons with algorithms by name.
std::vector<std::string> openMpiRing();
// For an available peer. The spec owns a directory that lives until the group has ended.
Result<GroupSpec> specOf(const Peer& peer, int ranks, const std::vector<int>& processors);

}  // namespace farandole::bench
