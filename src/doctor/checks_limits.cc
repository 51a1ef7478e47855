// Containers and limits, CPUs, memory.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "doctor/checks.h"
#include "launch/facts/fact_access.h"
#include "launch/hosts/host_spec.h"

namespace farandole::doctor {
namespace {

using nlohmann::json;
constexpr double kMiB = 1024.0 * 1024.0;
constexpr double kSmallShm = 256 * kMiB;  // docker's default is 64 MiB
constexpr double kFewFiles = 1024;
constexpr double kFilesPerRank = 64;

void checkLimits(const HostFacts& host, int ranks, Findings& findings) {
  const double shm = launch::facts::factNumber(host.facts, "/limits/dev_shm/bytes", -1);
  if (shm >= 0 && shm < kSmallShm) {
    findings.push_back({Severity::kWarning, "limits", host.name,
                        "/dev/shm of " + host.name +
                            " is small: PyTorch's data loaders and NCCL "
                            "fail there (Farandole itself does not need it)",
                        launch::facts::describeBytes(shm) + ", " +
                            launch::facts::describeBytes(
                                launch::facts::factNumber(host.facts, "/limits/dev_shm/free")) +
                            " free",
                        "docker run --shm-size=8g (or --ipc=host); in Kubernetes an emptyDir with "
                        "medium: Memory mounted at /dev/shm"});
  }
  const double files = launch::facts::factNumber(host.facts, "/limits/nofile/hard", 1e18);
  if (files < std::max(kFewFiles, kFilesPerRank * ranks)) {
    findings.push_back(
        {Severity::kWarning, "limits", host.name, "few files may be open at once on " + host.name,
         std::to_string(static_cast<long>(files)) + " for " + std::to_string(ranks) + " rank(s)",
         "ulimit -n 65536 (docker run --ulimit nofile=65536)"});
  }
}

}  // namespace

Findings checkContainers(const CheckInput& input) {
  Findings findings;
  for (std::size_t i = 0; i < input.hosts.size(); ++i) {
    const HostFacts& host = input.hosts[i];
    if (host.facts.is_null()) continue;
    const std::size_t before = findings.size();
    const std::string kind = launch::facts::factText(host.facts, "/container/kind");
    const bool own = launch::facts::factText(host.facts, "/container/network") == "own";
    // Many such networks join the hosts well: only one that does not is worth a complaint.
    if (host.unreached && own && kind != "kubernetes" && kind != "none") {
      findings.push_back(
          {Severity::kWarning, "container", host.name,
           host.name + " is a container with a network of its own: only published ports reach it",
           kind + " (" + launch::facts::factText(host.facts, "/container/evidence") + ")",
           std::string("docker run --network host, or publish a range (docker run -p ") +
               launch::hosts::kPortsToPass + ":" + launch::hosts::kPortsToPass +
               ") and give it as --port-range " + launch::hosts::kPortsToPass});
    }
    checkLimits(host, ranksOn(input, i), findings);
    if (findings.size() == before) {
      const json& lock = launch::facts::factAt(host.facts, "/limits/memlock/soft");
      findings.push_back({Severity::kOk, "limits", host.name,
                          (kind == "none" || kind.empty()
                               ? std::string("no container")
                               : kind + " container, network: " +
                                     launch::facts::factText(host.facts, "/container/network")) +
                              ", /dev/shm " +
                              launch::facts::describeBytes(
                                  launch::facts::factNumber(host.facts, "/limits/dev_shm/bytes")) +
                              ", memlock " +
                              (lock.is_number() ? launch::facts::describeBytes(lock.get<double>())
                                                : std::string("unlimited")),
                          "", ""});
    }
  }
  return findings;
}

Findings checkCpus(const CheckInput& input) {
  Findings findings;
  for (std::size_t i = 0; i < input.hosts.size(); ++i) {
    const HostFacts& host = input.hosts[i];
    if (host.facts.is_null()) continue;
    const int ranks = ranksOn(input, i);
    const double allowed = launch::facts::factNumber(host.facts, "/cpus/allowed");
    const double cores = launch::facts::factNumber(host.facts, "/cpus/cores");
    const double quota = launch::facts::factNumber(host.facts, "/cpus/quota");
    const double usable = quota > 0 ? std::min(quota, allowed) : allowed;
    const auto whole = [](double value) { return std::to_string(std::lround(value)); };
    char quotaText[32];
    std::snprintf(quotaText, sizeof(quotaText), "%.4g", quota);
    const std::string evidence =
        whole(allowed) + " CPUs allowed (" + launch::facts::factText(host.facts, "/cpus/cpuset") +
        "), " + whole(cores) + " cores, " +
        whole(launch::facts::factNumber(host.facts, "/cpus/numa_nodes")) + " NUMA node(s)" +
        (quota > 0 ? ", quota " + std::string(quotaText) + " CPUs" : "");
    const double wanted = static_cast<double>(ranks) * std::max(1, input.threads);
    if (usable > 0 && wanted > usable + 0.01) {
      findings.push_back(
          {Severity::kWarning, "cpu", host.name,
           std::to_string(ranks) + " rank(s)" +
               (input.threads > 1 ? " with " + std::to_string(input.threads) + " threads" : "") +
               " are more than " + host.name + " has CPUs for",
           evidence,
           input.threads > 1
               ? "--threads " + whole(std::max(1.0, std::floor(usable / std::max(1, ranks))))
               : "at most " + whole(std::max(1.0, std::floor(usable))) + " slots on " + host.name});
    } else {
      findings.push_back({Severity::kOk, "cpu", host.name,
                          std::to_string(ranks) + " rank(s), up to " +
                              whole(std::max(1.0, std::floor(usable / std::max(1, ranks)))) +
                              " thread(s) each",
                          evidence, ""});
    }
  }
  return findings;
}

Findings checkMemory(const CheckInput& input) {
  Findings findings;
  for (std::size_t i = 0; i < input.hosts.size(); ++i) {
    const HostFacts& host = input.hosts[i];
    if (host.facts.is_null()) continue;
    const double available = launch::facts::factNumber(host.facts, "/memory/available");
    const double limit = launch::facts::factNumber(host.facts, "/memory/cgroup_limit");
    const double usable = limit > 0 ? std::min(limit, available) : available;
    const int ranks = std::max(1, ranksOn(input, i));
    const std::string evidence =
        launch::facts::describeBytes(available) + " available" +
        (limit > 0 ? ", the control group allows " + launch::facts::describeBytes(limit) : "");
    if (usable > 0 && usable / ranks < 256 * kMiB) {
      findings.push_back(
          {Severity::kWarning, "memory", host.name,
           host.name + " has little memory for " + std::to_string(ranks) + " rank(s)", evidence,
           "fewer slots there, or docker run --memory with more"});
    } else {
      findings.push_back({Severity::kOk, "memory", host.name,
                          launch::facts::describeBytes(usable / ranks) + " for each rank", evidence,
                          ""});
    }
  }
  return findings;
}

}  // namespace farandole::doctor
