// Names, addresses and interfaces.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "doctor/checks.h"
#include "launch/facts/fact_access.h"

namespace farandole::doctor {
namespace {

using nlohmann::json;

std::vector<std::string> texts(const json& list) {
  std::vector<std::string> result;
  if (!list.is_array()) return result;
  for (const json& item : list) {
    if (item.is_string())
      result.push_back(launch::facts::printable(item.get_ref<const std::string&>()));
  }
  return result;
}

bool isLoopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1" || address.starts_with("::ffff:127.");
}

const json& factObject(const json& facts, const std::string& path) {
  static const json kEmpty = json::object();
  const json& value = launch::facts::factAt(facts, path);
  return value.is_object() ? value : kEmpty;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

// The addresses of interfaces that lead to other machines, without link-local ones.
std::vector<std::string> usableAddresses(const json& facts) {
  std::vector<std::string> result;
  const json& interfaces = launch::facts::factAt(facts, "/interfaces");
  if (!interfaces.is_array()) return result;
  for (const json& one : interfaces) {
    const std::string kind = launch::facts::factText(one, "/kind");
    if (kind == "loopback" || kind == "container-bridge" || !launch::facts::factFlag(one, "/up"))
      continue;
    const json& addresses = launch::facts::factAt(one, "/addresses");
    if (!addresses.is_array()) continue;
    for (const json& address : addresses) {
      const std::string text = launch::facts::factText(address, "/address");
      if (!text.empty() && !text.starts_with("fe80:")) result.push_back(text);
    }
  }
  return result;
}

void checkOwnName(const HostFacts& host, bool many, Findings& findings) {
  const std::string name = launch::facts::factText(host.facts, "/machine/hostname");
  const auto own = texts(launch::facts::factAt(host.facts, "/own_name/addresses"));
  const auto usable = usableAddresses(host.facts);
  const std::string address = usable.empty() ? "ADDRESS" : usable.front();
  if (own.empty()) {
    findings.push_back(
        {Severity::kWarning, "names", host.name, host.name + " cannot resolve its own name " + name,
         launch::facts::factText(host.facts, "/own_name/error"),
         "on " + host.name + ": echo \"" + address + " " + name + "\" >> /etc/hosts"});
  } else if (std::all_of(own.begin(), own.end(), isLoopback)) {
    // Harmless for us, who exchange addresses; deadly for libraries that publish the name (Gloo).
    findings.push_back({many ? Severity::kWarning : Severity::kOk, "names", host.name,
                        "the name " + name + " means loopback on " + host.name +
                            (many ? ": libraries that publish it cannot be reached" : ""),
                        joined(own),
                        many ? "on " + host.name + ": make /etc/hosts say \"" + address + " " +
                                   name + "\" instead, or set MASTER_ADDR=" + address
                             : ""});
  }
}

bool isAlias(const CheckInput& input, const std::string& name) {
  return std::any_of(input.hosts.begin(), input.hosts.end(), [&name](const HostFacts& host) {
    return host.name == name && !host.sshHost.empty() && host.sshHost != name;
  });
}

}  // namespace

Findings checkNames(const CheckInput& input) {
  Findings findings;
  const bool many = input.hosts.size() > 1;
  for (const HostFacts& host : input.hosts) {
    if (host.facts.is_null()) continue;
    const std::size_t before = findings.size();
    checkOwnName(host, many, findings);
    const json& names = factObject(host.facts, "/names");
    if (launch::facts::factFlag(names, "/timed_out")) {
      // Not even the first of them was answered.
      findings.push_back({Severity::kWarning, "names", host.name,
                          "the name server of " + host.name + " did not answer in time", "",
                          "see /etc/resolv.conf there; every name that /etc/hosts does not have "
                          "takes seconds"});
      continue;
    }
    for (const auto& item : names.items()) {
      const json& answer = item.value();
      const std::string name = launch::facts::printable(item.key());
      const auto addresses = texts(launch::facts::factAt(answer, "/addresses"));
      if (launch::facts::factFlag(answer, "/timed_out")) {
        findings.push_back({Severity::kWarning, "names", host.name,
                            "the name server of " + host.name + " did not answer in time", name,
                            "see /etc/resolv.conf there: getent hosts " + name});
      } else if (addresses.empty() && (host.local || isAlias(input, name))) {
        continue;  // reaching it tells more; an alias of ssh_config need not be a name
      } else if (addresses.empty()) {
        findings.push_back({Severity::kWarning, "names", host.name,
                            host.name + " cannot resolve " + name,
                            launch::facts::factText(answer, "/error"),
                            "on " + host.name + ": add \"ADDRESS " + name + "\" to /etc/hosts"});
      } else if (name != "localhost" && name != host.name && !isLoopback(name) &&
                 std::all_of(addresses.begin(), addresses.end(), isLoopback) && many) {
        findings.push_back(
            {Severity::kError, "names", host.name, name + " means loopback on " + host.name,
             joined(addresses),
             "on " + host.name + ": correct the line of " + name + " in /etc/hosts"});
      }
    }
    if (findings.size() == before) {
      findings.push_back({Severity::kOk, "names", host.name, "names resolve",
                          joined(texts(launch::facts::factAt(host.facts, "/own_name/addresses"))),
                          ""});
    }
  }
  return findings;
}

Findings checkInterfaces(const CheckInput& input) {
  Findings findings;
  std::map<long, std::string> mtus;
  for (const HostFacts& host : input.hosts) {
    if (host.facts.is_null()) continue;
    const auto usable = usableAddresses(host.facts);
    std::string described;
    const json& interfaces = launch::facts::factAt(host.facts, "/interfaces");
    for (const json& one : interfaces.is_array() ? interfaces : json::array()) {
      const std::string name = launch::facts::factText(one, "/name");
      const std::string kind = launch::facts::factText(one, "/kind");
      const bool addressed = launch::facts::factAt(one, "/addresses").is_array() &&
                             !launch::facts::factAt(one, "/addresses").empty();
      if (kind == "loopback") continue;
      described += (described.empty() ? "" : ", ") + name + " (" + kind +
                   (launch::facts::factFlag(one, "/up") ? "" : ", down") + ", MTU " +
                   std::to_string(static_cast<long>(launch::facts::factNumber(one, "/mtu"))) + ")";
      if (kind == "card" || kind == "container") {
        if (!launch::facts::factFlag(one, "/up") && addressed) {
          findings.push_back({Severity::kWarning, "interfaces", host.name,
                              name + " of " + host.name + " has an address but is down", "",
                              "ip link set " + name + " up"});
        } else if (addressed) {
          mtus.emplace(static_cast<long>(launch::facts::factNumber(one, "/mtu")),
                       host.name + " " + name);
        }
      }
    }
    if (usable.empty()) {
      const bool many = input.hosts.size() > 1;
      findings.push_back(
          {many ? Severity::kError : Severity::kOk, "interfaces", host.name,
           host.name + " has no interface that leads to other machines", described,
           many ? "connect it to a network, or run the container with --network host" : ""});
    } else {
      findings.push_back({Severity::kOk, "interfaces", host.name, joined(usable), described, ""});
    }
  }
  if (mtus.size() > 1 && input.hosts.size() > 1) {
    std::string evidence;
    for (const auto& [mtu, where] : mtus) {
      evidence += (evidence.empty() ? "" : ", ") + where + ": " + std::to_string(mtu);
    }
    findings.push_back({Severity::kWarning, "interfaces", "", "interfaces differ in their MTU",
                        evidence,
                        "ip link set IFACE mtu " + std::to_string(mtus.begin()->first) +
                            " on those of the same network, if large messages hang"});
  }
  return findings;
}

}  // namespace farandole::doctor
