// The identity of a rank, in the words of every launcher that scripts know.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "launch/plan/job_plan.h"

namespace farandole::launch::plan {

using Variables = std::vector<std::pair<std::string, std::string>>;

// What the job adds for this rank.
Variables rankVariables(const JobPlan& plan, const RankPlan& rank);

// The whole environment ("NAME=value"): the inherited one without what another launcher left in it,
// and rankVariables on top.
std::vector<std::string> rankEnvironment(const JobPlan& plan, const RankPlan& rank,
                                         const char* const* inherited);

}  // namespace farandole::launch::plan
