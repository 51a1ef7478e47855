// The one screen a person reads when a job has failed.
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "bootstrap/agent_server.h"
#include "bootstrap/bootstrap.h"

namespace farandole {

// reports: what the ranks had told when the cause was found.
std::string failureScreen(const RankEnd& cause, const std::vector<AgentServer::RankReport>& reports,
                          Duration runtime, int exitCode, bool colour);

}  // namespace farandole
