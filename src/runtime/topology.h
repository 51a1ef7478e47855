// Topology: where the ranks are, and how they reach each other.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/config.h"
#include "base/status.h"
#include "bootstrap/bootstrap.h"

namespace farandole::runtime {

struct Place {
  int machine = 0;
  int localRank = 0;
  std::string host;
  std::string card;  // LinkMesh::card(); empty without a mesh

  bool operator==(const Place&) const = default;
};

class Topology {
 public:
  // All ranks are on this machine.
  static Topology ofOneMachine(const Config& config);
  // Collective over all ranks: each announces its place and reads those of the others.
  static Result<Topology> exchange(bootstrap::Bootstrap& bootstrap, const Config& config,
                                   std::uint64_t epoch, std::string card, Deadline deadline);

  int size() const { return static_cast<int>(places_.size()); }
  const Place& at(std::int32_t rank) const { return places_[static_cast<std::size_t>(rank)]; }
  bool sameMachine(std::int32_t a, std::int32_t b) const { return at(a).machine == at(b).machine; }
  // The place of a rank among those with the same local rank, of which every machine has at most
  // one, in the order of the machines.
  struct Cross {
    int rank = 0;
    int size = 1;
    bool operator==(const Cross&) const = default;
  };
  Cross crossOf(std::int32_t rank) const;
  // The global ranks of a machine, ordered by local rank.
  std::vector<std::int32_t> ranksOn(int machine) const;
  // For each of these ranks its machine, numbered 0, 1, … in the order in which they appear.
  std::vector<int> machinesOf(std::span<const std::int32_t> ranks) const;

 private:
  std::vector<Place> places_;
};

std::string encodePlace(const Place& place);
Result<Place> decodePlace(std::string_view bytes);

}  // namespace farandole::runtime
