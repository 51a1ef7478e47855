#include "launch/hosts/host_spec.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "base/slurm_notation.h"
#include "base/text.h"
#include "launch/hosts/host_list.h"

namespace farandole::launch::hosts {
namespace {

constexpr std::size_t kLongestName = 253;  // of DNS

bool isNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == '.';
}

bool isName(std::string_view text) {
  if (text.empty() || text.size() > kLongestName || text.front() == '-') return false;
  for (char c : text) {
    if (!isNameCharacter(c)) return false;
  }
  return true;
}

// The address may have a zone: fe80::1%eth0.
bool isIpv6(std::string_view text) {
  const auto percent = text.find('%');
  if (percent != std::string_view::npos && !isName(text.substr(percent + 1))) return false;
  // Looked at first because inet_pton would stop at a zero byte and call the rest an address.
  const std::string address(text.substr(0, percent));
  if (address.find_first_not_of("0123456789abcdefABCDEF:.") != std::string::npos) return false;
  in6_addr parsed{};
  return ::inet_pton(AF_INET6, address.c_str(), &parsed) == 1;
}

Result<int> parseSlots(std::string_view item, std::string_view text) {
  const std::string where = "in host " + quoted(item) + ": ";
  const auto slots = parseDigits(text);
  if (!slots) {
    return Status::invalid(where + quoted(text) +
                           " is not a number of slots; write for example host:2");
  }
  if (*slots == 0) {
    return Status::invalid(where + "0 slots; leave the host out, or give it at least 1");
  }
  if (*slots > kMostSlots) {
    return Status::invalid(where + std::to_string(*slots) + " slots are too many (at most " +
                           std::to_string(kMostSlots) +
                           "); if it is the ssh port, write host:port:slots or use --ssh-port");
  }
  return static_cast<int>(*slots);
}

Result<int> parsePort(std::string_view item, std::string_view text) {
  const auto port = parseDigits(text);
  if (!port || *port < 1 || *port > 65535) {
    return Status::invalid("in host " + quoted(item) + ": " + quoted(text) +
                           " is not a port from 1 to 65535; write host:port:slots");
  }
  return static_cast<int>(*port);
}

// ":2" or ":22:2" after the name.
Status parseNumbers(std::string_view item, std::string_view text, HostSpec& host) {
  if (text.empty()) return {};
  const auto numbers = splitAt(text.substr(1), ':');
  if (text[0] != ':' || numbers.size() > 2) {
    return Status::invalid("host " + quoted(item) +
                           " has too much after its name; write host, host:slots or "
                           "host:port:slots, and an IPv6 address in brackets: [fe80::1]:2");
  }
  if (numbers.size() == 2) {
    auto port = parsePort(item, numbers[0]);
    if (!port.ok()) return port.status();
    host.port = *port;
  }
  auto slots = parseSlots(item, numbers.back());
  if (!slots.ok()) return slots.status();
  host.slots = *slots;
  return {};
}

}  // namespace

Status checkHostName(std::string_view name) {
  if (isName(name) || (name.find(':') != std::string_view::npos && isIpv6(name))) return {};
  if (!name.empty() && name.front() == '-') {
    return Status::invalid("host name " + quoted(name) + " begins with '-'; host names may not");
  }
  return Status::invalid(
      "bad host name " + quoted(name) +
      ": use letters, digits, '-', '_' and '.' only; separate hosts with commas");
}

Result<std::vector<HostSpec>> parseHostItem(std::string_view item) {
  if (item.empty()) return Status::invalid("a host is missing; write for example a:2");
  HostSpec host;
  std::string_view rest = item;
  if (const auto at = rest.rfind('@'); at != std::string_view::npos) {
    if (!isName(rest.substr(0, at))) {
      return Status::invalid("in host " + quoted(item) + ": bad user name " +
                             quoted(rest.substr(0, at)) + "; write user@host");
    }
    host.user = rest.substr(0, at);
    rest.remove_prefix(at + 1);
  }
  if (isIpv6(rest)) {
    host.name = rest;
    return std::vector<HostSpec>{host};
  }
  if (rest.starts_with('[') && rest.substr(0, rest.find(']')).find(':') != rest.npos) {
    const auto close = rest.find(']');
    if (close == std::string_view::npos || !isIpv6(rest.substr(1, close - 1))) {
      return Status::invalid("in host " + quoted(item) +
                             ": not an IPv6 address in brackets; write for example [fe80::1]:2");
    }
    host.name = rest.substr(1, close - 1);
    FARANDOLE_RETURN_IF_ERROR(parseNumbers(item, rest.substr(close + 1), host));
    return std::vector<HostSpec>{host};
  }
  const auto colon = rest.find(':');
  if (colon != std::string_view::npos) {
    FARANDOLE_RETURN_IF_ERROR(parseNumbers(item, rest.substr(colon), host));
  }
  auto names = expandHostRange(rest.substr(0, colon));
  if (!names.ok()) return names.status();
  std::vector<HostSpec> hosts;
  hosts.reserve(names->size());
  for (std::string& name : *names) {
    FARANDOLE_RETURN_IF_ERROR(checkHostName(name));
    host.name = std::move(name);
    hosts.push_back(host);
  }
  return hosts;
}

Result<std::vector<HostSpec>> parseHosts(std::string_view list) {
  if (trimmed(list).empty()) {
    return Status::invalid("the host list is empty; write for example -H a:2,b:2");
  }
  auto items = splitHostList(list);
  if (!items.ok()) return items.status();
  HostList hosts;
  for (std::size_t i = 0; i < items->size(); ++i) {
    const std::string_view item = (*items)[i];
    if (item.empty()) {
      return Status::invalid("item " + std::to_string(i + 1) + " of the host list " + quoted(list) +
                             " is empty; remove the extra comma");
    }
    auto parsed = parseHostItem(item);
    if (!parsed.ok()) return parsed.status();
    for (HostSpec& host : *parsed) {
      if (auto clash = hosts.add(std::move(host))) {
        return Status::invalid("host '" + clash->host.name + "' is listed twice; write " +
                               formatHost(clash->host));
      }
    }
    FARANDOLE_RETURN_IF_ERROR(hosts.check());
  }
  return hosts.take();
}

std::string formatHost(const HostSpec& host) {
  std::string text = host.user.empty() ? "" : host.user + "@";
  const bool numbers = host.port > 0 || host.slots > 0;
  const bool brackets = numbers && host.name.find(':') != std::string::npos;
  text += brackets ? "[" + host.name + "]" : host.name;
  if (host.port > 0) text += ":" + std::to_string(host.port);
  if (numbers) text += ":" + std::to_string(host.slots > 0 ? host.slots : 1);
  return text;
}

std::string formatHosts(const std::vector<HostSpec>& hosts) {
  std::string text;
  for (const HostSpec& host : hosts) text += (text.empty() ? "" : ",") + formatHost(host);
  return text;
}

Result<std::vector<std::pair<std::string, std::string>>> parseAdvertised(
    const std::string& text, const std::vector<std::string>& hosts) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (std::string_view rest = text; !rest.empty();) {
    const auto comma = std::min(rest.find(','), rest.size());
    const std::string_view word = rest.substr(0, comma);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    const auto equals = word.find('=');
    const bool known = equals != word.npos &&
                       std::find(hosts.begin(), hosts.end(), word.substr(0, equals)) != hosts.end();
    if (!known || equals + 1 == word.size()) {
      return Status::invalid("--advertise " + std::string(word) +
                             ": expected HOST=ADDRESS with a host of this job");
    }
    pairs.emplace_back(word.substr(0, equals), word.substr(equals + 1));
  }
  return pairs;
}

}  // namespace farandole::launch::hosts
