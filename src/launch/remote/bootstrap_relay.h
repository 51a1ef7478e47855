// BootstrapRelay: brings what ranks of other machines and the job's AgentServer say to each other
// to where it belongs: the ranks' words come from their agents, the answers go there.
#pragma once

#include <string>
#include <utility>

#include "bootstrap/agent_server.h"
#include "launch/plan/job_plan.h"
#include "launch/remote/agent_wire.h"
#include "launch/remote/mailbox.h"
#include "launch/remote/remote_hosts.h"

namespace farandole::launch::remote {

// Owned by the launcher, main thread, but for toRank().
class BootstrapRelay {
 public:
  // Both may be gone when it is destroyed. Of the plan it needs only where each rank is.
  BootstrapRelay(const launch::plan::JobPlan& plan, RemoteHosts& hosts)
      : plan_(plan), hosts_(hosts) {}

  Status open() { return mail_.open(); }
  void connect(bootstrap::AgentServer& server) { server_ = &server; }

  // Any thread: the server's answer to a rank.
  void toRank(int rank, std::string frame) { mail_.put(rank, std::move(frame)); }
  // Readable when there are answers; deliver() sends them on.
  int fd() const { return mail_.fd(); }
  void deliver() {
    for (auto& [rank, frame] : mail_.take()) {
      RemoteHost* host = hosts_.at(plan_.ranks.at(static_cast<std::size_t>(rank)).hostIndex);
      if (host != nullptr) host->send(encodeRelay(Type::kToRank, rank, frame));
    }
  }

  void fromRank(int rank, std::string frame) {
    if (server_ != nullptr) server_->relay(rank, std::move(frame));
  }

 private:
  const launch::plan::JobPlan& plan_;
  RemoteHosts& hosts_;
  Mailbox mail_;
  bootstrap::AgentServer* server_ = nullptr;
};

}  // namespace farandole::launch::remote
