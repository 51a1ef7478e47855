// The host list itself, and who is behind its names.
#include <algorithm>
#include <map>
#include <set>

#include "doctor/checks.h"
#include "launch/facts/fact_access.h"

namespace farandole::doctor {

Findings checkInputs(const CheckInput& input) {
  Findings findings;
  std::map<std::string, int> seen;
  int slots = 0;
  bool allSay = true;
  for (const HostFacts& host : input.hosts) {
    ++seen[host.name + ":" + std::to_string(host.port)];
    slots += std::max(1, host.slots);
    allSay = allSay && host.slots > 0;
    if (seen[host.name + ":" + std::to_string(host.port)] == 2) {
      findings.push_back({Severity::kWarning, "hosts", host.name,
                          "the host list names " + host.name + " more than once",
                          "its slots are added up",
                          "name it once, with the sum: " + host.name + ":N"});
    }
  }
  if (input.ranks > 0 && input.hosts.size() > 1 && input.ranks > slots) {
    const std::string first = input.hosts.front().name;
    findings.push_back(
        {Severity::kError, "hosts", "",
         "-np " + std::to_string(input.ranks) + " is more than the " + std::to_string(slots) +
             " slots of the host list",
         allSay ? "" : "a host without a number has one slot",
         "give more slots (for example -H " + first + ":" +
             std::to_string((input.ranks + static_cast<int>(input.hosts.size()) - 1) /
                            static_cast<int>(input.hosts.size())) +
             ",…) or -np " + std::to_string(slots)});
  } else if (input.ranks > 0 && input.hosts.size() > 1 &&
             ranksOn(input, input.hosts.size() - 1) == 0) {
    findings.push_back({Severity::kWarning, "hosts", input.hosts.back().name,
                        "-np " + std::to_string(input.ranks) + " leaves " +
                            input.hosts.back().name + " without a rank",
                        std::to_string(slots) + " slots", "-np " + std::to_string(slots)});
  }
  if (findings.empty()) {
    findings.push_back({Severity::kOk, "hosts", "",
                        std::to_string(input.hosts.size()) +
                            (input.hosts.size() == 1 ? " host, " : " hosts, ") +
                            std::to_string(input.ranks > 0 ? input.ranks : slots) + " rank(s)",
                        "", ""});
  }
  return findings;
}

Findings checkMachines(const CheckInput& input) {
  Findings findings;
  std::map<std::string, std::string> places;  // boot id and network: the same machine's same side
  std::map<std::string, std::string> names;
  for (const HostFacts& host : input.hosts) {
    if (host.facts.is_null()) continue;
    const std::string boot = launch::facts::factText(host.facts, "/machine/boot_id");
    const std::string hostname = launch::facts::factText(host.facts, "/machine/hostname");
    const std::string place =
        boot + "/" + std::to_string(launch::facts::factNumber(host.facts, "/machine/net_ns")) +
        "/" + std::to_string(launch::facts::factNumber(host.facts, "/machine/pid_ns"));
    const auto [twin, first] = places.emplace(place, host.name);
    if (!boot.empty() && !first && twin->second != host.name) {
      findings.push_back({Severity::kWarning, "machines", host.name,
                          host.name + " and " + twin->second + " are the same machine",
                          "both have boot id " + boot, "name it once, with the sum of the slots"});
    }
    const auto [same, firstName] = names.emplace(hostname, host.name);
    if (first && !firstName && !hostname.empty()) {
      findings.push_back({Severity::kWarning, "machines", host.name,
                          host.name + " and " + same->second + " both call themselves " + hostname,
                          "two machines with one hostname",
                          "give each its own: docker run --hostname NAME, or hostnamectl"});
    }
    if (!launch::facts::factFlag(host.facts, "/machine/in_passwd", true)) {
      const std::string uid =
          std::to_string(static_cast<long>(launch::facts::factNumber(host.facts, "/machine/uid")));
      findings.push_back(
          {Severity::kWarning, "machines", host.name,
           "user id " + uid + " has no entry in /etc/passwd of " + host.name,
           "ssh refuses to run there, and Python's getpass fails",
           "echo \"me:x:" + uid + ":0::$HOME:/bin/sh\" >> /etc/passwd in the image"});
    }
  }
  if (findings.empty() && !places.empty()) {
    findings.push_back({Severity::kOk, "machines", "",
                        std::to_string(places.size()) + " distinct machine(s) answered", "", ""});
  }
  return findings;
}

}  // namespace farandole::doctor
