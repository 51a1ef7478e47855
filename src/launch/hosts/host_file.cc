#include "launch/hosts/host_file.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "base/files.h"
#include "base/text.h"
#include "launch/hosts/host_list.h"

namespace farandole::launch::hosts {
namespace {

constexpr std::size_t kMostFileBytes = 16u << 20;
constexpr std::chrono::seconds kFileTimeout{10};  // with a pipe in the place of a file

constexpr std::string_view kHowToWrite = "; a line is: host, host:N or host slots=N";

struct Settings {
  std::optional<int> slots;
  std::optional<int> maxSlots;
};

// "slots=2 max_slots=4"; Open MPI also lets blanks stand around the '='.
Result<Settings> parseSettings(std::string_view text) {
  std::string spaced;
  for (char c : text) spaced += c == '=' ? std::string(" = ") : std::string(1, c);
  const auto words = splitWords(spaced);
  Settings settings;
  for (std::size_t i = 0; i < words.size(); i += 3) {
    const std::string_view name = words[i];
    const bool isMax = name == "max_slots" || name == "max-slots";
    if (!isMax && name != "slots") {
      const bool number = parseDigits(name).has_value();
      return Status::invalid((number ? "a bare number " : "unknown word ") + quoted(name) +
                             " after the host" + std::string(kHowToWrite));
    }
    if (i + 2 >= words.size() || words[i + 1] != "=") {
      return Status::invalid(quoted(name) + " has no value; write " + std::string(name) + "=2");
    }
    const auto value = parseDigits(words[i + 2]);
    if (!value || *value < 1 || *value > kMostSlots) {
      return Status::invalid(std::string(name) + "=" + std::string(quoted(words[i + 2])) +
                             " is not a number of slots from 1 to " + std::to_string(kMostSlots) +
                             "; write for example " + std::string(name) + "=2");
    }
    auto& target = isMax ? settings.maxSlots : settings.slots;
    if (target) return Status::invalid(quoted(name) + " is given twice; keep one");
    target = static_cast<int>(*value);
  }
  return settings;
}

Result<std::vector<HostSpec>> parseLine(std::string_view line) {
  // Up to the first blank, but not one inside a range.
  std::size_t end = 0;
  for (bool inside = false; end < line.size(); ++end) {
    if (line[end] == '[') inside = true;
    if (line[end] == ']') inside = false;
    if (!inside && (line[end] == ' ' || line[end] == '\t')) break;
  }
  const std::string_view item = line.substr(0, end);
  if (item.find(',') != std::string_view::npos && item.find('[') == std::string_view::npos) {
    return Status::invalid("several hosts in one line: " + quoted(item) +
                           "; write one host a line");
  }
  auto hosts = parseHostItem(item);
  if (!hosts.ok()) return hosts.status();
  auto settings = parseSettings(line.substr(end));
  if (!settings.ok()) return settings.status();
  if (settings->slots && hosts->front().slots != 0) {
    return Status::invalid("host " + quoted(item) + " has slots twice; keep either ':" +
                           std::to_string(hosts->front().slots) +
                           "' or 'slots=" + std::to_string(*settings->slots) + "'");
  }
  for (HostSpec& host : *hosts) {
    if (settings->slots) host.slots = *settings->slots;
    if (settings->maxSlots && host.slots == 0) host.slots = 1;
    if (settings->maxSlots && *settings->maxSlots < host.slots) {
      return Status::invalid("max_slots=" + std::to_string(*settings->maxSlots) +
                             " is less than the host's " + countOf(host.slots, "slot") +
                             "; raise it or leave it out");
    }
  }
  return hosts;
}

// How the user would write this host with these slots.
std::string asLine(HostSpec host) {
  const int slots = std::exchange(host.slots, 0);
  if (host.port != 0) {
    host.slots = slots;
    return formatHost(host);
  }
  return formatHost(host) + " slots=" + std::to_string(slots);
}

Status addLine(std::string_view line, int number, HostList& list) {
  auto hosts = parseLine(line);
  if (!hosts.ok()) return hosts.status();
  for (HostSpec& host : *hosts) {
    if (auto clash = list.add(std::move(host), number)) {
      return Status::invalid("host '" + clash->host.name + "' is listed twice (first in line " +
                             std::to_string(clash->firstLine) +
                             "); write one line: " + asLine(clash->host));
    }
  }
  return list.check();
}

}  // namespace

Result<std::vector<HostSpec>> parseHostFile(std::string_view text, const std::string& path) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // the mark some editors write
  HostList list;
  int number = 0;
  for (std::string_view line : splitAt(text, '\n')) {
    ++number;
    line = trimmed(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    if (Status status = addLine(line, number, list); !status.ok()) {
      return Status::invalid(path + ":" + std::to_string(number) + ": " + status.message());
    }
  }
  auto hosts = list.take();
  if (hosts.empty()) {
    return Status::invalid(path + ": no hosts in this file" + std::string(kHowToWrite));
  }
  return hosts;
}

Result<std::vector<HostSpec>> readHostFile(const std::string& path) {
  auto text = readFile(path, kMostFileBytes, kFileTimeout);
  if (!text.ok()) {
    return Status(text.status().code(), "cannot read the host file: " + text.status().message());
  }
  return parseHostFile(*text, path);
}

}  // namespace farandole::launch::hosts
