// Every host to every other, on the ports and addresses a job would use.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "doctor/checks.h"
#include "launch/facts/probe.h"

namespace farandole::doctor {

struct LinkEnd {
  std::string name;
  launch::facts::HostProbe* probe = nullptr;
  std::vector<std::string> addresses;  // where it may be reached; see linkAddresses
  std::string outside = {};            // a last attempt: where its sshd is reached; "" if the same
  std::vector<std::string> own = {};   // its own addresses, whatever was advertised
  std::string network = {};            // equal on two hosts: they share one network
};

// Which hosts were reached only at their outside address: "h2=203.0.113.5,h3=203.0.113.5".
std::string onlyOutside(const std::vector<LinkEnd>& ends, const nlohmann::json& links);

// Opens an echo on every host and visits it from every other (a single host visits itself). All
// pairs are listed in `links`; findings are the failures, or one line that all is well.
Findings checkLinks(const std::vector<LinkEnd>& ends, launch::facts::PortRange range,
                    Deadline deadline, nlohmann::json& links);

}  // namespace farandole::doctor
