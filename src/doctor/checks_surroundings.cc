// Devices, clocks, job systems.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "doctor/checks.h"
#include "launch/facts/fact_access.h"

namespace farandole::doctor {
namespace {

using nlohmann::json;
constexpr double kSkewSeconds = 2;

std::size_t countOf(const json& list) { return list.is_array() ? list.size() : 0; }

bool hasVariable(const json& facts, const std::string& prefix) {
  const json& names = launch::facts::factAt(facts, "/surroundings/variables");
  if (!names.is_array()) return false;
  return std::any_of(names.begin(), names.end(), [&prefix](const json& name) {
    return name.is_string() && name.get_ref<const std::string&>().starts_with(prefix);
  });
}

}  // namespace

Findings checkDevices(const CheckInput& input) {
  Findings findings;
  for (const HostFacts& host : input.hosts) {
    if (host.facts.is_null()) continue;
    const std::size_t render = countOf(launch::facts::factAt(host.facts, "/devices/render"));
    const std::size_t nvidia = countOf(launch::facts::factAt(host.facts, "/devices/nvidia"));
    if (countOf(launch::facts::factAt(host.facts, "/devices/render_refused")) > 0) {
      const std::string group = launch::facts::factText(host.facts, "/devices/render_gid");
      findings.push_back({Severity::kWarning, "devices", host.name,
                          "GPU devices of " + host.name + " may not be opened by this user",
                          "/dev/dri/renderD*, group " + group,
                          "docker run --device /dev/dri --group-add " + group});
    } else {
      findings.push_back({Severity::kOk, "devices", host.name,
                          render + nvidia == 0 ? "no GPUs: reductions run on CPUs"
                                               : std::to_string(render) + " render device(s), " +
                                                     std::to_string(nvidia) + " NVIDIA device(s)",
                          "", ""});
    }
  }
  return findings;
}

Findings checkClocks(const CheckInput& input) {
  Findings findings;
  bool any = false;
  for (const HostFacts& host : input.hosts) {
    if (host.facts.is_null() || host.arrived == 0) continue;
    any = true;
    const double skew = launch::facts::factNumber(host.facts, "/time") - host.arrived;
    if (std::abs(skew) < kSkewSeconds) continue;
    char text[64];
    std::snprintf(text, sizeof(text), "%+.1f s", skew);
    findings.push_back({Severity::kWarning, "clock", host.name,
                        "the clock of " + host.name + " differs from ours", text,
                        "timedatectl set-ntp true on both (log times and file times mislead)"});
  }
  if (findings.empty() && any) {
    findings.push_back({Severity::kOk, "clock", "", "clocks agree within 2 s", "", ""});
  }
  return findings;
}

Findings checkSurroundings(const CheckInput& input) {
  Findings findings;
  for (const HostFacts& host : input.hosts) {
    if (host.facts.is_null()) continue;
    const std::size_t before = findings.size();
    if (launch::facts::factFlag(host.facts, "/surroundings/istio")) {
      findings.push_back({Severity::kWarning, "surroundings", host.name,
                          "an Istio sidecar stands in the way of " + host.name + "'s connections",
                          "ports 15001/15006, /etc/istio or ISTIO_META_*",
                          "annotate the pods: sidecar.istio.io/inject: \"false\""});
    }
    const std::string mpi = launch::facts::factText(host.facts, "/open_mpi/version");
    const bool oldNames =
        hasVariable(host.facts, "OMPI_MCA_orte_") || hasVariable(host.facts, "OMPI_MCA_plm_rsh_");
    if (std::atoi(mpi.c_str()) >= 5 && oldNames && !hasVariable(host.facts, "PRTE_MCA_")) {
      findings.push_back({Severity::kWarning, "surroundings", host.name,
                          "Open MPI " + mpi + " ignores the OMPI_MCA_orte_* variables set on " +
                              host.name + ": mpirun would start all ranks on one host",
                          "PRTE_MCA_* are not set",
                          "use farandole run, or set PRTE_MCA_prte_default_hostfile and the "
                          "other PRTE_MCA_* too"});
    }
    if (findings.size() > before) continue;
    const std::string mode = launch::facts::factText(host.facts, "/surroundings/mode");
    findings.push_back(
        {Severity::kOk, "surroundings", host.name,
         mode == "none" || mode.empty() ? "no job system around us" : "started by " + mode,
         mpi.empty() ? "" : "Open MPI " + mpi, ""});
  }
  return findings;
}

}  // namespace farandole::doctor
