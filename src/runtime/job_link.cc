#include "runtime/job_link.h"

#include <utility>

#include "base/text.h"
#include "runtime/identity.h"

namespace farandole::runtime {

Result<std::unique_ptr<JobLink>> JobLink::start(Config config, std::uint64_t epoch) {
  if (config.size == config.localSize) keepToLoopback(config);
  transport::LinkMeshOptions options;
  options.job = config.job;
  options.secretHex = config.secret;
  options.rank = config.rank;
  options.size = config.size;
  options.host = config.host;
  options.epoch = static_cast<std::uint32_t>(epoch);
  FARANDOLE_ASSIGN_OR_RETURN(options.security, transport::parseWireSecurity(config.wireSecurity));
  options.lanes = config.lanes;
  options.limits.congestion = config.congestion;
  options.ports.bind = config.bind;
  options.ports.low = static_cast<std::uint16_t>(config.firstPort);
  options.ports.high = static_cast<std::uint16_t>(config.lastPort);
  options.advertise = config.advertise;
  options.interfaces = config.interfaces;
  options.connectTime = config.startTimeout;

  FARANDOLE_ASSIGN_OR_RETURN(auto mesh, transport::LinkMesh::start(options));
  std::unique_ptr<JobLink> link(new JobLink());
  link->mesh_ = std::move(mesh);
  link->switchboard_ = std::make_unique<control::Switchboard>(*link->mesh_);
  link->mesh_->onControl([raw = link.get()](int peer, std::string& message) {
    if (Status status = raw->switchboard_->control().deliver(peer, message); !status.ok()) {
      raw->peerEnded(peer, status);
    }
  });
  link->mesh_->onRecord([raw = link.get()](int peer, RawBytes& message) {
    return raw->switchboard_->records().deliver(peer, message);
  });
  link->mesh_->onPeerEnd(
      [raw = link.get()](int peer, const Status& status) { raw->peerEnded(peer, status); });
  return link;
}

Status JobLink::introduce(const Topology& topology, int me) {
  for (int rank = 0; rank < topology.size(); ++rank) {
    if (rank == me) continue;
    const std::vector<std::int32_t> there = topology.ranksOn(topology.at(rank).machine);
    const std::string companions = there.size() < 2 ? "" : rankList(there) + " run on that host";
    Status status = mesh_->introduce(rank, topology.at(rank).card, companions);
    if (!status.ok()) return status.withRank(rank, topology.at(rank).host);
  }
  return {};
}

void JobLink::listen(PeerEnd callback) {
  std::vector<End> early;
  {
    const MutexLock lock(mutex_);
    callback_ = callback;
    early = std::exchange(early_, {});
  }
  for (const End& end : early) callback(end.rank, end.status);
}

void JobLink::peerEnded(int rank, const Status& status) {
  PeerEnd callback;
  {
    const MutexLock lock(mutex_);
    if (!callback_) {
      early_.push_back({rank, status});
      return;
    }
    callback = callback_;
  }
  callback(rank, status);
}

}  // namespace farandole::runtime
