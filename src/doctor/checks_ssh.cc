// What sshd's StrictModes and the client ask of ~/.ssh.
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "doctor/checks.h"
#include "launch/facts/fact_access.h"

namespace farandole::doctor {
namespace {

using nlohmann::json;

long modeOf(const json& file) {
  return std::strtol(launch::facts::factText(file, "/mode").c_str(), nullptr, 8);
}

// Files that others must not be able to change; private keys not even to read.
void checkFile(const HostFacts& host, const json& file, long forbidden, const char* wanted,
               const std::string& consequence, Findings& findings) {
  if (!file.is_object()) return;
  const std::string path = launch::facts::factText(file, "/path");
  const long uid = static_cast<long>(launch::facts::factNumber(host.facts, "/ssh/uid"));
  const long owner = static_cast<long>(launch::facts::factNumber(file, "/uid"));
  if (owner != uid && owner != 0) {
    findings.push_back({Severity::kWarning, "ssh-files", host.name,
                        path + " on " + host.name + " belongs to another user: " + consequence,
                        "owner " + std::to_string(owner) + ", we are " + std::to_string(uid),
                        "chown " + std::to_string(uid) + " " + path});
  }
  if ((modeOf(file) & forbidden) != 0) {
    findings.push_back({Severity::kWarning, "ssh-files", host.name,
                        path + " on " + host.name + " is too open: " + consequence,
                        "mode " + launch::facts::factText(file, "/mode"),
                        std::string("chmod ") + wanted + " " + path});
  }
}

}  // namespace

Findings checkSshFolders(const CheckInput& input) {
  Findings findings;
  const bool many = input.hosts.size() > 1;
  for (const HostFacts& host : input.hosts) {
    if (host.facts.is_null()) continue;
    const std::size_t before = findings.size();
    const json& ssh = launch::facts::factAt(host.facts, "/ssh");
    const std::string server = "sshd (StrictModes) ignores the keys in it";
    checkFile(host, launch::facts::factAt(ssh, "/home"), 022, "go-w", server, findings);
    checkFile(host, launch::facts::factAt(ssh, "/folder"), 022, "700", server, findings);
    checkFile(host, launch::facts::factAt(ssh, "/authorized_keys"), 022, "600", server, findings);
    checkFile(host, launch::facts::factAt(ssh, "/config"), 022, "600", "ssh refuses to run",
              findings);
    const json& keys = launch::facts::factAt(ssh, "/keys");
    for (const json& key : keys.is_array() ? keys : json::array()) {
      checkFile(host, key, 077, "600", "ssh does not use it", findings);
    }
    if (host.local && many && launch::facts::factAt(ssh, "/folder").is_object() &&
        !launch::facts::factFlag(ssh, "/writable")) {
      findings.push_back({Severity::kWarning, "ssh-files", host.name,
                          "nothing can be written to ~/.ssh, so new host keys are not remembered",
                          launch::facts::factText(ssh, "/path"),
                          "put the hosts' keys into known_hosts beforehand (ssh-keyscan HOST), or "
                          "mount it writable"});
    }
    if (findings.size() == before) {
      findings.push_back({Severity::kOk, "ssh-files", host.name,
                          launch::facts::factAt(ssh, "/folder").is_object()
                              ? "owner and modes are right"
                              : "there is no ~/.ssh",
                          launch::facts::factText(ssh, "/path"), ""});
    }
  }
  return findings;
}

}  // namespace farandole::doctor
