// JobLink: this rank's mesh for one epoch, with what belongs to it: its options, the cards of the
// others, the handlers of control messages, and the ends of connections until listen() is called.
// To the conductor it is the network.
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
  // Reports the end of a peer's connection; see LinkMesh::onPeerEnd. Any thread may call it.
  using PeerEnd = std::function<void(int rank, const Status&)>;

  static Result<std::unique_ptr<JobLink>> start(Config config, std::uint64_t epoch);
  ~JobLink() override { stop(); }

  transport::LinkMesh& mesh() { return *mesh_; }
  control::Switchboard& switchboard() { return *switchboard_; }
  Status introduce(const Topology& topology, int me);
  // Called once. What has happened before is reported at once.
  void listen(PeerEnd callback);
  // Ends all traffic. Afterwards no memory of an operation is touched. May be called again.
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
