// The last thing the doctor tries: a small job on all hosts that computes (doctor_rank.h).
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "base/clock.h"
#include "doctor/doctor.h"

namespace farandole::doctor {

// The command line of that job.
std::vector<std::string> collectiveCommand(const DoctorSettings& settings);

// Runs that job; `measured` becomes what rank 0 said. One finding.
Findings checkCollective(const DoctorSettings& settings, Deadline deadline,
                         nlohmann::json& measured);

}  // namespace farandole::doctor
