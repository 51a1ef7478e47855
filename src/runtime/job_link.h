// JobLink: this rank's mesh for one epoch, with what must happen around it: the right options, the
// others' cards, control messages to their sets, and news of peers kept until listen() is called. To
// the conductor it is the network.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "conductor/network.h"
#include "control/switchboard.h"
#include "runtime/topology.h"
#include "transport/link_mesh.h"

namespace farandole::runtime {

class JobLink final : public conductor::Network {
 public:
  // What became of a peer's connection; see LinkMesh::onPeerEnd. Any thread.
  using PeerEnd = std::function<void(int rank, const Status&)>;

  static Result<std::unique_ptr<JobLink>> start(Config config, std::uint64_t epoch);
  ~JobLink() override { stop(); }

  transport::LinkMesh& mesh() { return *mesh_; }
  control::Switchboard& switchboard() { return *switchboard_; }
  Status introduce(const Topology& topology, int me);
  // Once; what has happened before is told at once.
  void listen(PeerEnd callback);
  // Ends all traffic; afterwards no memory of an operation is touched. Idempotent.
  void stop() { mesh_->stop(); }

  bool poll() override { return mesh_->poll(); }
  void rest() override { mesh_->rest(); }
  void hold() override { transport::LinkMesh::hold(); }
  void letGo() override { transport::LinkMesh::letGo(); }
  void end() override { stop(); }

 private:
  struct End {
    int rank = -1;
    Status status;
  };
  JobLink() = default;
  void peerEnded(int rank, const Status& status);

  std::unique_ptr<control::Switchboard> switchboard_;
  Mutex mutex_;
  PeerEnd callback_ GUARDED_BY(mutex_);
  std::vector<End> early_ GUARDED_BY(mutex_);
  std::unique_ptr<transport::LinkMesh> mesh_;
};

}  // namespace farandole::runtime
