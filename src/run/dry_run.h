// What --dry-run prints.
#pragma once

#include <string>

#include "launch/plan/job_plan.h"

namespace farandole::run {

// The plan for a person: command, ranks, hosts and variables. The secret is not shown.
std::string describePlan(const launch::plan::JobPlan& plan);

}  // namespace farandole::run
