#include "doctor/doctor.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/thread.h"
#include "doctor/checks.h"
#include "doctor/collective_check.h"
#include "doctor/diagnosis.h"
#include "doctor/links.h"
#include "doctor/reach.h"
#include "doctor/report.h"
#include "launch/facts/fact_access.h"
#include "launch/hosts/host_spec.h"
#include "launch/hosts/name_lookup.h"

namespace farandole::doctor {
namespace {

using nlohmann::json;
constexpr std::size_t kAtOnce = 64;
constexpr Duration kFactsTime = std::chrono::seconds(8);

struct Visit {
  Findings findings;
  std::unique_ptr<launch::facts::HostProbe> probe;
  HostFacts facts;
};

void take(Findings& to, Findings from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

std::string agentAdvice(const std::string& name, const std::string& message) {
  for (const char* trouble : {"Read-only file system", "Permission denied", "No space left"}) {
    if (message.find(trouble) == std::string::npos) continue;
    return "free some space or give write access in ~/.cache there; or name another folder of your "
           "own: mkdir -m 700 /tmp/cache-$(id -u) && echo 'export XDG_CACHE_HOME=/tmp/cache-$(id "
           "-u)' "
           ">> ~/.bashrc there; or install Farandole on " +
           name;
  }
  return "farandole run -v -H " + name + " -np 1 hostname shows more";
}

void makeProbe(const DoctorHost& host, const DoctorSettings& settings, Deadline deadline,
               Visit& visit) {
  if (host.local) {
    visit.probe = std::make_unique<launch::facts::LocalProbe>();
    return;
  }
  if (deadline.passed()) {
    visit.findings.push_back({Severity::kWarning, "hosts", host.name,
                              host.name + " was not visited: the time was over", "",
                              "farandole doctor --timeout 120"});
    return;
  }
  Reach reach = checkReach(host, settings.ssh, deadline);
  take(visit.findings, std::move(reach.findings));
  visit.facts.sshHost = reach.host;
  if (!reach.reachable) return;
  if (!settings.makeProbe) {
    visit.findings.push_back({Severity::kOk, "facts", host.name,
                              "only reached: its facts and links were not looked at", "", ""});
    return;
  }
  auto made = settings.makeProbe(host, settings.ssh, deadline);
  if (made.ok()) {
    visit.probe = std::move(*made);
    return;
  }
  visit.findings.push_back({Severity::kError, "agent", host.name,
                            "Farandole could not be started on " + host.name,
                            launch::facts::printable(made.status().message()),
                            agentAdvice(host.name, made.status().message())});
}

void visitHost(const DoctorHost& host, const DoctorSettings& settings, Deadline deadline,
               Visit& visit) {
  visit.facts.name = host.name;
  visit.facts.slots = host.slots;
  visit.facts.local = host.local;
  visit.facts.port = host.port;
  makeProbe(host, settings, deadline, visit);
  if (!visit.probe) return;
  auto facts = visit.probe->facts(settings.request, Deadline::after(deadline.left(kFactsTime)));
  visit.facts.arrived = launch::facts::unixTime();
  if (facts.ok()) {
    visit.facts.facts = std::move(*facts);
    return;
  }
  visit.findings.push_back({Severity::kError, "agent", host.name,
                            host.name + " does not tell its facts",
                            launch::facts::printable(facts.status().message()),
                            "try again; farandole doctor -H " + host.name + " --timeout 120"});
  visit.probe.reset();
}

using Advertised = std::vector<std::pair<std::string, std::string>>;

// Every host must be able to resolve every other, the launcher included.
std::vector<std::string> namesOf(const std::vector<DoctorHost>& hosts) {
  std::vector<std::string> names;
  if (hosts.size() < 2) return names;
  for (const DoctorHost& host : hosts) {
    const bool loopback = host.name == "localhost" || host.name.starts_with("127.");
    if (!loopback) names.push_back(host.name);
  }
  return names;
}

// Where this machine is, as the other hosts see its ssh connections; "" if none does.
std::string seenByOthers(const std::vector<Visit>& visits) {
  for (const Visit& visit : visits) {
    const std::string seen =
        visit.facts.local ? "" : launch::facts::factText(visit.facts.facts, "/ssh_client");
    if (!seen.empty()) return seen;
  }
  return "";
}

// Where each host is to be reached: as the user said, else at its own addresses, and as a last
// attempt where its sshd is.
std::vector<LinkEnd> linkEnds(std::vector<Visit>& visits, const Advertised& advertised) {
  std::vector<LinkEnd> ends;
  for (Visit& visit : visits) {
    if (!visit.probe) continue;
    LinkEnd end{visit.facts.name, visit.probe.get(), {}};
    end.own = launch::facts::linkAddresses(visit.facts.facts);
    end.network = launch::facts::factText(visit.facts.facts, "/machine/boot_id") + " " +
                  std::to_string(launch::facts::factNumber(visit.facts.facts, "/machine/net_ns"));
    for (const auto& [host, address] : advertised) {
      if (host == end.name) end.addresses.push_back(launch::hosts::numericAddress(address));
    }
    if (end.addresses.empty()) {
      end.addresses = end.own;
      const std::string ssh = visit.facts.local
                                  ? seenByOthers(visits)
                                  : launch::hosts::numericAddress(visit.facts.sshHost);
      const bool own =
          std::find(end.addresses.begin(), end.addresses.end(), ssh) != end.addresses.end();
      if (!own && !ssh.starts_with("127.") && ssh != "::1") end.outside = ssh;
    }
    ends.push_back(std::move(end));
  }
  // A machine without a network still talks to itself.
  if (ends.size() == 1 && ends[0].addresses.empty()) ends[0].addresses = {"127.0.0.1"};
  return ends;
}

std::vector<std::string> hostNames(const std::vector<DoctorHost>& hosts) {
  std::vector<std::string> names;
  for (const DoctorHost& host : hosts) names.push_back(host.name);
  return names;
}

Finding behindNat(const std::string& outside, launch::facts::PortRange range) {
  return {Severity::kWarning,
          "links",
          "",
          "reached only at an address that is not the host's own (NAT, docker -p): " + outside,
          "",
          "farandole run --advertise " + outside +
              (range.first == 0 ? " --data-ports A-B (the ports that are passed on to it)"
                                : " --data-ports " + launch::facts::describe(range))};
}

// Every rank listens on one port; nothing else of Farandole does.
Findings checkPorts(const DoctorSettings& settings) {
  int most = 1;
  for (const DoctorHost& host : settings.hosts) most = std::max(most, host.slots);
  if (settings.hosts.size() < 2) return {};  // ranks of one machine open none
  const std::string need = std::to_string(most) + (most == 1 ? " port" : " ports");
  if (settings.ports.first == 0) {
    return {{Severity::kOk, "ports", "",
             "a job listens on " + need + " of each host, one for every rank: any that is free",
             "--data-ports A-B keeps to a range", ""}};
  }
  if (settings.ports.last - settings.ports.first + 1 < most) {
    return {{Severity::kError, "ports", "",
             "a job listens on " + need + " of a host, but there are fewer in " +
                 launch::facts::describe(settings.ports),
             "", "give a range of at least " + need + ", and twice that for jobs that overlap"}};
  }
  return {{Severity::kOk, "ports", "",
           "a job listens on " + need + " of each host, out of " +
               launch::facts::describe(settings.ports),
           "", ""}};
}

}  // namespace

Diagnosis diagnose(const DoctorSettings& given) {
  DoctorSettings settings = given;
  settings.request.names = namesOf(settings.hosts);
  const TimePoint begin = Clock::now();
  const Deadline deadline = Deadline::after(settings.time);
  std::vector<Visit> visits(settings.hosts.size());
  // Two thirds for reaching, so that there is time for the links.
  const Deadline reaching = Deadline::after(settings.time * 2 / 3);
  inParallel(visits.size(), kAtOnce,
             [&](std::size_t i) { visitHost(settings.hosts[i], settings, reaching, visits[i]); });

  Diagnosis diagnosis;
  CheckInput input;
  input.ranks = settings.ranks;
  input.threads = settings.threads;
  for (Visit& visit : visits) {
    take(diagnosis.findings, std::move(visit.findings));
    input.hosts.push_back(visit.facts);
    diagnosis.hosts.push_back({{"name", visit.facts.name},
                               {"local", visit.facts.local},
                               {"slots", visit.facts.slots},
                               {"facts", visit.facts.facts}});
  }
  auto advertised = launch::hosts::parseAdvertised(settings.advertise, hostNames(settings.hosts));
  const auto ends = linkEnds(visits, advertised.ok() ? *advertised : Advertised());
  Findings links = checkLinks(ends, settings.ports, deadline, diagnosis.links);
  for (const json& link : diagnosis.links) {
    if (launch::facts::factFlag(link, "/ok")) continue;
    for (HostFacts& host : input.hosts)
      host.unreached |= host.name == launch::facts::factText(link, "/to");
  }
  if (const std::string outside = onlyOutside(ends, diagnosis.links); !outside.empty()) {
    links.push_back(behindNat(outside, settings.ports));
    settings.advertise += (settings.advertise.empty() ? "" : ",") + outside;
  }
  take(diagnosis.findings, checkAll(input));
  take(diagnosis.findings, std::move(links));
  take(diagnosis.findings, checkPorts(settings));
  if (settings.collective && exitCodeOf(diagnosis.findings, false) == 0) {
    visits.clear();  // their agents have done their part
    take(diagnosis.findings, checkCollective(settings, deadline, diagnosis.collective));
  }
  diagnosis.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return diagnosis;
}

std::string diagnosisTable(const DoctorSettings& settings, bool colour) {
  return reportTable(diagnose(settings), colour);
}

}  // namespace farandole::doctor
