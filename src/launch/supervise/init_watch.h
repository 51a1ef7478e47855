// No silent non-distribution: what the ranks have reported to bootstrap, compared with what was
// started.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bootstrap/agent_server.h"

namespace farandole::launch::supervise {

// A contradiction that will not go away by waiting: a rank that believes in another size than it
// was given, or one that ended normally without initialising while another is inside init (which
// would wait for it). Names both sides. endedWell[i]: rank i has exited with code 0.
std::optional<std::string> findInitProblem(
    const std::vector<bootstrap::AgentServer::RankReport>& reports,
    const std::vector<bool>& endedWell);

bool anyInitialised(const std::vector<bootstrap::AgentServer::RankReport>& reports);

}  // namespace farandole::launch::supervise
