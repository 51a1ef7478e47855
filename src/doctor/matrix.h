// What the doctor's job has measured between all hosts, for people.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace farandole::doctor {

// "h0   -      41 µs 112 MB/s …", one line per host; "" if nothing was measured. told: of rank 0
// (doctor_rank.h), not to be trusted.
std::string matrixText(const std::vector<std::string>& hosts, const nlohmann::json& told);

}  // namespace farandole::doctor
