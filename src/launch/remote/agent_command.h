// `farandole agent`: not for people, but what the launcher starts on other machines.
#pragma once

#include <string>
#include <vector>

namespace farandole::launch::remote {

// Without more words it is the agent of a job. --id prints which tree this is; --check ID and
// --adopt ID are the remote script's (pushed_tree.h). The exit code.
int agentMain(const std::vector<std::string>& words);

}  // namespace farandole::launch::remote
