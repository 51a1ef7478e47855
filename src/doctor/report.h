// The diagnosis for people and for programs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "doctor/doctor.h"
#include "doctor/finding.h"

namespace farandole::doctor {

// 0: nothing in the way; 1: warnings, if they count; 2: errors.
int exitCodeOf(const Findings& findings, bool strict);

// A table: errors and warnings with evidence and remedy, then what is in order; equal findings of
// several hosts share a line.
std::string reportTable(const Diagnosis& diagnosis, bool colour);

// The same after a visit that is paid now.
std::string diagnosisTable(const DoctorSettings& settings, bool colour);

nlohmann::json reportJson(const Diagnosis& diagnosis, int exitCode);

}  // namespace farandole::doctor
