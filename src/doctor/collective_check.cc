#include "doctor/collective_check.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "launch/facts/fact_access.h"
#include "launch/hosts/host_spec.h"
#include "process/bounded_command.h"
#include "process/command_lookup.h"

namespace farandole::doctor {
namespace {

using nlohmann::json;

constexpr char kCheck[] = "collective";
constexpr std::size_t kMostEvidence = 300;

std::string sizeName(std::int64_t bytes) {
  if (bytes >= 1 << 20) return std::to_string(bytes >> 20) + " MiB";
  return bytes >= 1 << 10 ? std::to_string(bytes >> 10) + " KiB" : std::to_string(bytes) + " B";
}

std::string timeName(double microseconds) {
  char text[32];
  if (microseconds < 1000) {
    std::snprintf(text, sizeof text, "%.0f µs", microseconds);
  } else {
    std::snprintf(text, sizeof text, "%.1f ms", microseconds / 1000);
  }
  return text;
}

// The launcher's own words about a failed job: the cause and the rank's last lines.
std::string reasonIn(const std::string& text) {
  const auto cause = text.find("first cause: ");
  std::string reason = text.substr(cause == text.npos ? 0 : cause);
  return launch::facts::printable(reason.substr(0, kMostEvidence));
}

}  // namespace

std::vector<std::string> collectiveCommand(const DoctorSettings& settings) {
  std::vector<launch::hosts::HostSpec> hosts;
  for (const DoctorHost& host : settings.hosts) {
    hosts.push_back({host.name, host.user, host.port, 1});
  }
  std::vector<std::string> words{process::ownProgram(),
                                 "run",
                                 "-q",
                                 "--no-prefix",
                                 "-H",
                                 launch::hosts::formatHosts(hosts),
                                 "--wdir",
                                 "/",
                                 "--connect-timeout",
                                 std::to_string(settings.ssh.connectTimeoutSeconds)};
  const auto add = [&words](const char* option, const std::string& value) {
    if (!value.empty()) words.insert(words.end(), {option, value});
  };
  if (settings.ssh.port != 0) add("-p", std::to_string(settings.ssh.port));
  add("-i", settings.ssh.identityFile);
  if (settings.ssh.acceptNewHostKeys) words.emplace_back("--accept-new-host-keys");
  add("--data-ports", launch::facts::describe(settings.ports));
  add("--advertise", settings.advertise);
  words.insert(words.end(), {process::kOwnCommand, "doctor-rank"});
  return words;
}

Findings checkCollective(const DoctorSettings& settings, Deadline deadline, json& measured) {
  measured = json::object();
  const std::string ranks = "allreduce on " + std::to_string(settings.hosts.size()) +
                            (settings.hosts.size() == 1 ? " host" : " hosts");
  if (deadline.passed()) {
    return {{Severity::kWarning, kCheck, "", ranks + " was not tried: the time was over", "",
             "farandole doctor --timeout 120"}};
  }
  const process::CommandEnd end = process::runBounded(collectiveCommand(settings), deadline);
  if (end.timedOut) {
    return {{Severity::kError, kCheck, "", ranks + " did not end in time", reasonIn(end.err),
             "farandole doctor --timeout 120"}};
  }
  const auto line = end.out.rfind('{', end.out.find("\"allreduce\""));
  json result = line == end.out.npos ? json() : json::parse(end.out.substr(line), nullptr, false);
  if (!end.succeeded() || !result.is_object() ||
      !launch::facts::factAt(result, "/allreduce").is_array()) {
    return {{Severity::kError, kCheck, "", ranks + " failed", reasonIn(end.err + end.out),
             "see the links above; farandole run -v -H HOSTS with a program of yours shows more"}};
  }
  measured = std::move(result);
  std::string times;
  for (const json& one : measured["allreduce"]) {
    times += (times.empty() ? "" : ", ") +
             sizeName(static_cast<std::int64_t>(launch::facts::factNumber(one, "/bytes"))) + " " +
             timeName(launch::facts::factNumber(one, "/us"));
  }
  return {{Severity::kOk, kCheck, "", ranks + " gives the right sums", times, ""}};
}

}  // namespace farandole::doctor
