#include "doctor/report.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>

#include "doctor/diagnosis.h"
#include "launch/facts/fact_access.h"

namespace farandole::doctor {
namespace {

using nlohmann::json;
constexpr std::size_t kMostHostsNamed = 4;

const char* nameOf(Severity severity) {
  switch (severity) {
    case Severity::kOk: return "ok";
    case Severity::kWarning: return "warning";
    case Severity::kError: return "error";
  }
  return "";
}

const char* colourOf(Severity severity) {
  switch (severity) {
    case Severity::kOk: return "\x1b[32m";
    case Severity::kWarning: return "\x1b[33m";
    case Severity::kError: return "\x1b[31m";
  }
  return "";
}

struct Row {
  Finding finding;
  std::vector<std::string> hosts;
};

bool sameTexts(const Finding& a, const Finding& b) {
  return std::tie(a.severity, a.check, a.cause, a.evidence, a.fix) ==
         std::tie(b.severity, b.check, b.cause, b.evidence, b.fix);
}

// Worst first; within that, in the order of the checks.
std::vector<Row> rowsOf(const Findings& findings) {
  std::vector<Row> rows;
  for (const Finding& finding : findings) {
    const auto same = std::find_if(rows.begin(), rows.end(), [&finding](const Row& row) {
      return sameTexts(row.finding, finding);
    });
    if (same == rows.end()) {
      rows.push_back({finding, {finding.host}});
    } else {
      same->hosts.push_back(finding.host);
    }
  }
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return a.finding.severity > b.finding.severity;
  });
  return rows;
}

std::string hostsOf(const Row& row) {
  if (row.hosts.size() > kMostHostsNamed) return std::to_string(row.hosts.size()) + " hosts";
  std::string text;
  for (const std::string& host : row.hosts) text += (text.empty() ? "" : ",") + host;
  return text.empty() ? "all" : text;
}

std::string padded(const std::string& text, std::size_t width) {
  return text.size() < width ? text + std::string(width - text.size(), ' ') : text;
}

std::string counted(std::size_t count, const char* what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

std::size_t count(const Findings& findings, Severity severity) {
  return static_cast<std::size_t>(
      std::count_if(findings.begin(), findings.end(),
                    [severity](const Finding& finding) { return finding.severity == severity; }));
}

constexpr std::size_t kMostHostsShown = 16;

// A character of UTF-8 is one column here.
std::string right(const std::string& text, std::size_t width) {
  const auto columns = static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
  return columns < width ? std::string(width - columns, ' ') + text : text;
}

// A number of the table under this key; nothing if it is not there.
std::optional<double> numberAt(const json& measured, const char* key, std::size_t i,
                               std::size_t j) {
  const json& rows = launch::facts::factAt(measured, key);
  if (!rows.is_array() || i >= rows.size() || !rows[i].is_array() || j >= rows[i].size() ||
      !rows[i][j].is_number()) {
    return std::nullopt;
  }
  return rows[i][j].get<double>();
}

std::string cell(const json& measured, std::size_t i, std::size_t j) {
  const auto way = numberAt(measured, "/us", i, j);
  const auto speed = numberAt(measured, "/mb_per_s", i, j);
  if (!way || !speed) return "-";
  char text[64];
  std::snprintf(text, sizeof text, "%.0f µs %.0f MB/s", *way, *speed);
  return text;
}

}  // namespace

int exitCodeOf(const Findings& findings, bool strict) {
  if (count(findings, Severity::kError) > 0) return 2;
  return strict && count(findings, Severity::kWarning) > 0 ? 1 : 0;
}

std::string reportTable(const Diagnosis& diagnosis, bool colour) {
  const std::vector<Row> rows = rowsOf(diagnosis.findings);
  std::size_t checkWidth = 5;
  std::size_t hostWidth = 4;
  for (const Row& row : rows) {
    checkWidth = std::max(checkWidth, row.finding.check.size());
    hostWidth = std::max(hostWidth, hostsOf(row).size());
  }
  hostWidth = std::min<std::size_t>(hostWidth, 32);
  const std::string indent(10, ' ');
  std::string text;
  for (const Row& row : rows) {
    const Finding& finding = row.finding;
    const std::string severity = padded(nameOf(finding.severity), 8);
    text += (colour ? colourOf(finding.severity) + severity + "\x1b[0m" : severity) + "  " +
            padded(finding.check, checkWidth) + "  " + padded(hostsOf(row), hostWidth) + "  " +
            finding.cause;
    if (finding.severity == Severity::kOk) {
      text += (finding.evidence.empty() ? "" : " — " + finding.evidence) + "\n";
      continue;
    }
    text += "\n";
    if (!finding.evidence.empty()) text += indent + "seen: " + finding.evidence + "\n";
    if (!finding.fix.empty()) text += indent + "do:   " + finding.fix + "\n";
  }
  std::vector<std::string> names;
  for (const json& host : diagnosis.hosts) names.push_back(host["name"].get<std::string>());
  text += matrixText(names, diagnosis.collective);
  char seconds[32];
  std::snprintf(seconds, sizeof(seconds), "%.1f s", diagnosis.seconds);
  text += counted(diagnosis.hosts.size(), "host") + ", " +
          counted(count(diagnosis.findings, Severity::kError), "error") + ", " +
          counted(count(diagnosis.findings, Severity::kWarning), "warning") + ", " + seconds + "\n";
  return text;
}

json reportJson(const Diagnosis& diagnosis, int exitCode) {
  json findings = json::array();
  for (const Finding& finding : diagnosis.findings) {
    findings.push_back({{"severity", nameOf(finding.severity)},
                        {"check", finding.check},
                        {"host", finding.host},
                        {"cause", finding.cause},
                        {"evidence", finding.evidence},
                        {"fix", finding.fix}});
  }
  return {{"farandole", FARANDOLE_VERSION},    {"exit_code", exitCode},
          {"seconds", diagnosis.seconds},      {"findings", findings},
          {"hosts", diagnosis.hosts},          {"links", diagnosis.links},
          {"collective", diagnosis.collective}};
}

std::string matrixText(const std::vector<std::string>& hosts, const json& measured) {
  if (!measured.contains("us") || hosts.size() < 2 || hosts.size() > kMostHostsShown) return "";
  constexpr std::size_t kColumn = 20;
  std::string text = "a small message's way and a large one's speed, from row to column:\n";
  std::size_t width = 8;
  for (const std::string& host : hosts) width = std::max(width, host.size());
  text += std::string(width, ' ');
  for (const std::string& host : hosts) text += "  " + right(host, kColumn);
  text += "\n";
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    text += hosts[i] + std::string(width - hosts[i].size(), ' ');
    for (std::size_t j = 0; j < hosts.size(); ++j)
      text += "  " + right(cell(measured, i, j), kColumn);
    text += "\n";
  }
  return text;
}

}  // namespace farandole::doctor
