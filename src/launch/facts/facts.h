// What a host is like, as one JSON object: the doctor's raw material.
//
// The same function runs in the doctor for its own machine and in the agent of a remote one; only
// the JSON travels. It states facts and judges nothing: judging is in checks.h.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"

namespace farandole::launch::facts {

struct FactsRequest {
  std::vector<std::string> names;  // host names to be resolved there
  std::string folder;              // the job's working folder; empty: the current one
  std::string script;              // a file whose content must be the same everywhere; may be empty
  std::string searchPath = {};     // the PATH that ranks will have; empty: the host's own
};

nlohmann::json toJson(const FactsRequest& request);
// Checks types and sizes: it comes from a connection.
Result<FactsRequest> factsRequestFromJson(const nlohmann::json& json);

// Takes at most as long as its slowest item may: 5 s; an item that did not answer is
// {"timed_out": true}. Thread-safe. See docs/doctor.md for the content.
nlohmann::json collectFacts(const FactsRequest& request);

// The addresses at which other machines may reach this one, in order of their texts.
std::vector<std::string> ownAddresses();

// Seconds since 1970, for comparing clocks.
double unixTime();

}  // namespace farandole::launch::facts
