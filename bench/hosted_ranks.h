// The ranks of a benchmark on several machines: which machines, and the commands that start ours
// and the peers' there.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "bench/peers.h"
#include "bench/rank_group.h"
#include "launch/hosts/host_spec.h"

namespace farandole::bench {

struct HostOptions {
  std::string hosts;              // "alpha:2,beta:2"; empty: this machine alone
  std::string mapBy = "slot";     // slot, node
  std::string wireSecurity;       // of ours: several of encrypt, integrity, handshake; "": encrypt
  std::string networkInterfaces;  // for ours and for the peers; empty: the choice of each
  std::string lanes;              // of ours
  bool flat = false;              // ours also without shared memory inside the machines
  bool gloo = false;              // ours also with Gloo's functions
  int sshPort = 0;
  std::string identityFile;
};

// One way of running our ranks.
struct OwnVariant {
  std::string name;  // "handshake", "flat encrypt"
  std::vector<std::string> options;
};

// The processor of each rank: neighbours on a machine do not share one, however ranks are spread,
// nor do the first ranks of machines, which in a laboratory all have the same processors. Empty if
// there are no processors to choose from.
std::vector<int> pinsOf(const std::vector<launch::hosts::HostSpec>& hosts, bool byNode,
                        const std::vector<int>& processors);

class HostedRanks {
 public:
  // Checks the options, and finds the address under which the machines reach this one.
  static Result<HostedRanks> of(const HostOptions& options);

  int ranks() const { return ranks_; }
  std::string describe() const;
  Result<std::vector<OwnVariant>> variants() const;
  GroupSpec own(const OwnVariant& variant, const std::vector<int>& processors) const;
  // For an available peer; an error if it does not run on several machines.
  Result<GroupSpec> of(const Peer& peer, const std::vector<int>& processors) const;

 private:
  GroupSpec empty(const std::string& name, const std::vector<int>& processors) const;
  std::vector<std::string> openMpi() const;
  // The starter of MPICH and Intel MPI; 0 per host: as many as there are slots.
  std::vector<std::string> hydra(const std::string& starter, int perHost) const;
  std::vector<std::string> farandole(const std::vector<std::string>& more) const;
  std::string list(bool slots) const;

  HostOptions options_;
  std::vector<launch::hosts::HostSpec> hosts_;
  int ranks_ = 0;
  std::string address_;
};

}  // namespace farandole::bench
