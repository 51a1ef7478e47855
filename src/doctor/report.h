// The diagnosis for people and for programs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "doctor/doctor.h"
#include "doctor/finding.h"

namespace farandole::doctor {

// 0: nothing in the way; 1: warnings, if they count; 2: errors.
int exitCodeOf(const Findings& findings, bool strict);

// A table: errors and warnings with evidence and remedy, then what is in order; equal findings of
// several hosts share a line.
std::string reportTable(const Diagnosis& diagnosis, bool colour);

// What the doctor's job has measured between all hosts: "h0   -      41 µs 112 MB/s …", one line
// per host; "" if nothing was measured. measured: what rank 0 said (doctor_rank.h), not to be
// trusted.
std::string matrixText(const std::vector<std::string>& hosts, const nlohmann::json& measured);

nlohmann::json reportJson(const Diagnosis& diagnosis, int exitCode);

}  // namespace farandole::doctor
