// The doctor's view of a job that could not be started.
#pragma once

#include <string>

#include "run/run_plan.h"

namespace farandole::run {

// Visits the hosts of the plan, for 20 s at most: the doctor's table.
std::string consultDoctor(const RunPlan& plan);

}  // namespace farandole::run
