// LinkNetwork: the mesh of a job's connections as the conductor's Network.
#pragma once

#include "conductor/network.h"
#include "runtime/job_link.h"
#include "transport/link_mesh.h"

namespace farandole::runtime {

class LinkNetwork final : public conductor::Network {
 public:
  // The link outlives it.
  explicit LinkNetwork(JobLink& link) : link_(link) {}

  bool poll() override { return link_.mesh().poll(); }
  void rest() override { link_.mesh().rest(); }
  void hold() override { transport::LinkMesh::hold(); }
  void letGo() override { transport::LinkMesh::letGo(); }
  void end() override { link_.stop(); }

 private:
  JobLink& link_;
};

}  // namespace farandole::runtime
