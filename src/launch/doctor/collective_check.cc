#include "launch/doctor/collective_check.h"

#include <algorithm>
#include <cstdio>
#include <optional>

#include "launch/bounded_command.h"
#include "launch/doctor/fact_access.h"
#include "launch/hosts/host_spec.h"
#include "launch/own_command.h"

namespace farandole {
namespace {

using nlohmann::json;

constexpr char kCheck[] = "collective";
constexpr std::size_t kMostHostsShown = 16;
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
  return printable(reason.substr(0, kMostEvidence));
}

// A character of UTF-8 is one column here.
std::string right(const std::string& text, std::size_t width) {
  const auto columns = static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
  return columns < width ? std::string(width - columns, ' ') + text : text;
}

// Of the table under this key; nothing if it is not there.
std::optional<double> numberAt(const json& told, const char* key, std::size_t i, std::size_t j) {
  const json& rows = factAt(told, key);
  if (!rows.is_array() || i >= rows.size() || !rows[i].is_array() || j >= rows[i].size() ||
      !rows[i][j].is_number()) {
    return std::nullopt;
  }
  return rows[i][j].get<double>();
}

std::string cell(const json& told, std::size_t i, std::size_t j) {
  const auto way = numberAt(told, "/us", i, j);
  const auto speed = numberAt(told, "/mb_per_s", i, j);
  if (!way || !speed) return "-";
  char text[64];
  std::snprintf(text, sizeof text, "%.0f µs %.0f MB/s", *way, *speed);
  return text;
}

}  // namespace

std::vector<std::string> collectiveCommand(const DoctorSettings& settings) {
  std::vector<HostSpec> hosts;
  for (const DoctorHost& host : settings.hosts) {
    hosts.push_back({host.name, host.user, host.port, 1});
  }
  std::vector<std::string> words{ownProgram(),
                                 "run",
                                 "-q",
                                 "--no-prefix",
                                 "-H",
                                 formatHosts(hosts),
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
  if (settings.ports.first != 0) {
    add("--data-ports",
        std::to_string(settings.ports.first) + "-" + std::to_string(settings.ports.last));
  }
  add("--advertise", settings.advertise);
  words.insert(words.end(), {kOwnCommand, "doctor-rank"});
  return words;
}

Findings checkCollective(const DoctorSettings& settings, Deadline deadline, json& told) {
  told = json::object();
  const std::string ranks = "allreduce on " + std::to_string(settings.hosts.size()) +
                            (settings.hosts.size() == 1 ? " host" : " hosts");
  if (deadline.passed()) {
    return {{Severity::kWarning, kCheck, "", ranks + " was not tried: the time was over", "",
             "farandole doctor --timeout 120"}};
  }
  const CommandEnd end = runBounded(collectiveCommand(settings), deadline);
  if (end.timedOut) {
    return {{Severity::kError, kCheck, "", ranks + " did not end in time", reasonIn(end.err),
             "farandole doctor --timeout 120"}};
  }
  const auto line = end.out.rfind('{', end.out.find("\"allreduce\""));
  json result = line == end.out.npos ? json() : json::parse(end.out.substr(line), nullptr, false);
  if (!end.succeeded() || !result.is_object() || !factAt(result, "/allreduce").is_array()) {
    return {{Severity::kError, kCheck, "", ranks + " failed", reasonIn(end.err + end.out),
             "see the links above; farandole run -v -H HOSTS with a program of yours shows more"}};
  }
  told = std::move(result);
  std::string times;
  for (const json& one : told["allreduce"]) {
    times += (times.empty() ? "" : ", ") +
             sizeName(static_cast<std::int64_t>(factNumber(one, "/bytes"))) + " " +
             timeName(factNumber(one, "/us"));
  }
  return {{Severity::kOk, kCheck, "", ranks + " gives the right sums", times, ""}};
}

std::string matrixText(const std::vector<std::string>& hosts, const json& told) {
  if (!told.contains("us") || hosts.size() < 2 || hosts.size() > kMostHostsShown) return "";
  constexpr std::size_t kColumn = 20;
  std::string text = "a small message's way and a large one's speed, from row to column:\n";
  std::size_t width = 8;
  for (const std::string& host : hosts) width = std::max(width, host.size());
  text += std::string(width, ' ');
  for (const std::string& host : hosts) text += "  " + right(host, kColumn);
  text += "\n";
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    text += hosts[i] + std::string(width - hosts[i].size(), ' ');
    for (std::size_t j = 0; j < hosts.size(); ++j) text += "  " + right(cell(told, i, j), kColumn);
    text += "\n";
  }
  return text;
}

}  // namespace farandole
