#include "launch/remote/bootstrap_relay.h"

#include "launch/remote/agent_wire.h"

namespace farandole::launch::remote {

void BootstrapRelay::deliver() {
  for (auto& [rank, frame] : mail_.take()) {
    RemoteHost* host = hosts_.at(plan_.ranks.at(static_cast<std::size_t>(rank)).hostIndex);
    if (host != nullptr) host->send(encodeRelay(Type::kToRank, rank, frame));
  }
}

}  // namespace farandole::launch::remote
