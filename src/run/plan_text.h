// A plan for a person: what --dry-run and --display-map print.
#pragma once

#include <string>

#include "launch/plan/job_plan.h"

namespace farandole::run {

// --dry-run: command, ranks, hosts and variables. The secret is not shown.
std::string describePlan(const launch::plan::JobPlan& plan);

// --display-map: hosts and their ranks. CPUs and threads are known for the ranks of a machine that
// has settled its part of the plan.
std::string describeMap(const launch::plan::JobPlan& plan, bool asOpenMpi);

}  // namespace farandole::run
