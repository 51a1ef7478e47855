#include "launch/ssh/ssh_scene.h"

#include <algorithm>
#include <cctype>
#include <cstring>

#include "base/text.h"

namespace farandole::launch::ssh {
namespace {

struct Place {
  std::string host;
  std::string port;  // empty: not said
};

// "[host]:port" or "host", as known_hosts writes it.
Place fromKnownHostsName(const std::string& name) {
  if (!name.starts_with('[')) return {name, ""};
  return {between(name, "[", "]"), between(name, "]:", "")};
}

Place placeOf(const std::string& line, const std::vector<std::string>& lines) {
  if (const auto host = between(line, "connect to host ", " port "); !host.empty()) {
    return {host, between(line, " port ", ":")};
  }
  const auto known =
      between(lineWith("host key is known for ", lines), "host key is known for ", " and you have");
  if (!known.empty()) return fromKnownHostsName(known);
  const auto changed = between(lineWith("Host key for ", lines), "Host key for ", " has changed");
  return changed.empty() ? Place{} : fromKnownHostsName(changed);
}

bool isNumber(const std::string& text) {
  return !text.empty() && text.size() <= 5 &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c); });
}

// The user whom ssh named, else the one that was asked for.
std::string loginOf(const std::string& line, const SshTarget& target) {
  const std::string denied = between(line, "", ": Permission denied");
  if (denied.find('@') != std::string::npos && denied.find(' ') == std::string::npos) return denied;
  return (target.user.empty() ? "" : target.user + "@") + bareHost(target.host);
}

}  // namespace

std::string between(std::string_view line, std::string_view before, std::string_view after) {
  const auto begin = line.find(before);
  if (begin == line.npos) return {};
  const auto from = begin + before.size();
  const auto to = after.empty() ? line.size() : line.find(after, from);
  return to == line.npos ? std::string() : std::string(line.substr(from, to - from));
}

std::string lineWith(std::string_view text, const std::vector<std::string>& lines) {
  for (const std::string& line : lines) {
    if (line.find(text) != line.npos) return line;
  }
  return {};
}

std::vector<std::string> cleanLines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const auto end = text.find_first_of("\r\n");
    std::string line(text.substr(0, end));
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    for (char& c : line) c = std::iscntrl(static_cast<unsigned char>(c)) ? ' ' : c;
    while (line.ends_with(' ')) line.pop_back();
    if (!line.empty()) lines.push_back(std::move(line));
  }
  return lines;
}

std::string fileWord(const std::string& path) { return shellWord(path, "~"); }

std::string knownHostsFile(const Scene& scene) {
  const std::string offending = between(lineWith("Offending ", scene.lines), " key in ", "");
  return offending.substr(0, offending.rfind(':'));
}

Scene makeScene(const std::string& line, const SshTarget& target, const SshOptions& options,
                SshEnd end, const std::vector<std::string>& lines) {
  const Place place = placeOf(line, lines);
  const int asked = portAsked(target, options);
  std::string port = asked != 0 ? std::to_string(asked) : "22";
  if (isNumber(place.port)) port = place.port;
  const std::string name = bareHost(target.host);
  return {line,
          name,
          shellWord(place.host.empty() ? name : place.host),
          port,
          name + " (port " + port + ")",
          port == "22" ? "" : "-p " + port + " ",
          shellWord(loginOf(line, target)),
          options.identityFile,
          end,
          lines};
}

}  // namespace farandole::launch::ssh
