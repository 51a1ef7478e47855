// What --display-map prints: a plan as hosts and ranks.
#pragma once

#include <string>

#include "launch/plan/job_plan.h"

namespace farandole::run {

// Processors and threads are known for ranks whose machine has settled the plan.
std::string showMap(const launch::plan::JobPlan& plan, bool asOpenMpi);

}  // namespace farandole::run
