#include "bootstrap/agent_server.h"

#include <unistd.h>

#include <string>
#include <utility>

#include "bootstrap/agent_loop.h"

namespace farandole::bootstrap {

Result<std::unique_ptr<AgentServer>> AgentServer::start(Options options) {
  constexpr int kMaxSize = 1 << 20;
  if (options.size < 1 || options.size > kMaxSize) {
    return Status::invalid("a job has 1 to " + std::to_string(kMaxSize) + " ranks, not " +
                           std::to_string(options.size));
  }
  FARANDOLE_ASSIGN_OR_RETURN(auto loop, Loop::make(options));
  return std::unique_ptr<AgentServer>(new AgentServer(std::move(loop)));
}

AgentServer::AgentServer(std::unique_ptr<Loop> loop) : loop_(std::move(loop)), owner_(::getpid()) {}

AgentServer::~AgentServer() {
  // A fork child has neither the thread nor a right to the locks.
  if (::getpid() != owner_) static_cast<void>(loop_.release());
}

std::string AgentServer::address() const { return "@" + loop_->name(); }

void AgentServer::rankEnded(const RankEnd& end) { loop_->rankEnded(end); }

void AgentServer::lookForStopped(bool look) { loop_->lookForStopped(look); }

void AgentServer::relay(int rank, std::string frame) { loop_->relay(rank, std::move(frame)); }

std::vector<AgentServer::RankReport> AgentServer::reports() const { return loop_->reports(); }

}  // namespace farandole::bootstrap
