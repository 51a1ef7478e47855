// What a visit of the doctor has found: the findings, and the facts and measurements behind them.
#pragma once

#include <nlohmann/json.hpp>

#include "doctor/finding.h"

namespace farandole::doctor {

struct Diagnosis {
  Findings findings;
  nlohmann::json hosts = nlohmann::json::array();  // name and facts of each
  nlohmann::json links = nlohmann::json::array();
  nlohmann::json collective = nlohmann::json::object();  // see doctor_rank.h
  double seconds = 0;
};

}  // namespace farandole::doctor
