// The one screen a person reads when a job has failed.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "bootstrap/agent_server.h"
#include "bootstrap/bootstrap.h"

namespace farandole::launch::supervise {

// gone: the ranks that the cause is about, its own among them. reports: what the ranks had reported
// when the cause was found.
std::string failureScreen(const bootstrap::RankEnd& cause, const std::set<int>& gone,
                          const std::vector<bootstrap::AgentServer::RankReport>& reports,
                          Duration runtime, int exitCode, bool colour);

}  // namespace farandole::launch::supervise
