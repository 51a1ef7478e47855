// What must be the same everywhere: program, script, folder, Python.
#include <map>
#include <nlohmann/json.hpp>

#include "doctor/checks.h"
#include "launch/facts/fact_access.h"

namespace farandole::doctor {
namespace {

using nlohmann::json;

// Who has which value: the most frequent one is taken for the right one, our own in doubt.
struct Census {
  std::map<std::string, std::vector<std::string>> hosts;
  std::string own;

  void add(const HostFacts& host, const std::string& value) {
    hosts[value].push_back(host.name);
    if (own.empty() || host.local) own = value;
  }
  // Something rather than nothing: hosts that lack it are the ones to be named.
  std::string usual() const {
    std::string best = own;
    for (const auto& [value, who] : hosts) {
      if (!value.empty() && (best.empty() || who.size() > hosts.at(best).size())) best = value;
    }
    return best;
  }
};

Findings compare(const CheckInput& input, const std::string& check, const std::string& path,
                 const std::string& what, Severity severity, const std::string& fix) {
  Census census;
  for (const HostFacts& host : input.hosts) {
    if (!host.facts.is_null()) census.add(host, launch::facts::factText(host.facts, path));
  }
  if (census.hosts.empty()) return {};
  const std::string usual = census.usual();
  Findings findings;
  for (const HostFacts& host : input.hosts) {
    if (host.facts.is_null()) continue;
    const std::string value = launch::facts::factText(host.facts, path);
    if (value == usual) continue;
    findings.push_back(
        {severity, check, host.name, host.name + " has another " + what,
         (value.empty() ? "none" : value) + ", others: " + (usual.empty() ? "none" : usual), fix});
  }
  if (findings.empty()) {
    findings.push_back(
        {Severity::kOk, check, "", what + " " + (usual.empty() ? "none" : usual), "", ""});
  }
  return findings;
}

std::string writableAdvice(const HostFacts& host, const std::string& path) {
  const long uid = static_cast<long>(launch::facts::factNumber(host.facts, "/machine/uid"));
  if (uid == 0) return "mount it without :ro, or say another with --wdir";
  return "chown " + std::to_string(uid) + " " + path + ", mount it without :ro, or say another " +
         "with --wdir";
}

// What is started here is the right one; without it here, what most have.
void checkScript(const CheckInput& input, Findings& findings) {
  Census census;
  std::string right;
  for (const HostFacts& host : input.hosts) {
    if (host.facts.is_null()) continue;
    census.add(host, launch::facts::factText(host.facts, "/script/sha256"));
    if (host.local) right = launch::facts::factText(host.facts, "/script/sha256");
  }
  if (right.empty()) right = census.usual();
  const std::size_t before = findings.size();
  for (const HostFacts& host : input.hosts) {
    const std::string content = launch::facts::factText(host.facts, "/script/sha256");
    if (host.facts.is_null() || (content == right && !content.empty())) continue;
    const std::string path = launch::facts::factText(host.facts, "/script/path");
    const std::string fix =
        "copy it there: scp " + path + " " + host.name + ":" + path + ", or use a shared folder";
    if (content.empty()) {
      const std::string error = launch::facts::factText(host.facts, "/script/error");
      findings.push_back({Severity::kError, "files", host.name,
                          "the script cannot be read on " + host.name,
                          path + ": " + (error.empty() ? "no answer for 5 s" : error), fix});
    } else {
      findings.push_back({Severity::kError, "files", host.name,
                          host.name + " has another content of the script",
                          "SHA-256 " + content + ", elsewhere: " + right, fix});
    }
  }
  if (findings.size() == before) {
    findings.push_back({Severity::kOk, "files", "", "content of the script " + right, "", ""});
  }
}

void append(Findings& to, Findings some) { to.insert(to.end(), some.begin(), some.end()); }

}  // namespace

Findings checkSoftware(const CheckInput& input) {
  Findings findings = compare(input, "software", "/version", "Farandole version", Severity::kError,
                              "farandole run --push brings this machine's version there");
  append(findings, compare(input, "software", "/machine/arch", "architecture", Severity::kError,
                           "use hosts of one architecture, with Farandole installed on each"));
  append(findings, compare(input, "software", "/python/version", "Python", Severity::kWarning,
                           "use the same image or environment on all hosts: conda env export"));
  append(findings,
         compare(input, "software", "/python/executable", "python3", Severity::kWarning,
                 "use the same environment, at the same place, on all hosts: conda env export"));
  for (const HostFacts& host : input.hosts) {
    if (host.facts.is_null() || launch::facts::factFlag(host.facts, "/locale/valid", true))
      continue;
    findings.push_back({Severity::kWarning, "software", host.name,
                        "the locale " + launch::facts::factText(host.facts, "/locale/name") +
                            " is not installed on " + host.name,
                        "Python falls back to ASCII or warns", "export LC_ALL=C.UTF-8"});
  }
  return findings;
}

Findings checkFiles(const CheckInput& input) {
  Findings findings;
  bool script = false;
  for (const HostFacts& host : input.hosts) {
    if (host.facts.is_null()) continue;
    script = script || launch::facts::factAt(host.facts, "/script").is_object();
    const std::string path = launch::facts::factText(host.facts, "/folder/path");
    if (launch::facts::factFlag(host.facts, "/folder/timed_out")) {
      findings.push_back({Severity::kError, "files", host.name,
                          "the working folder hangs on " + host.name, "no answer for 5 s",
                          "see its file system (a dead NFS server?): df there"});
    } else if (!launch::facts::factFlag(host.facts, "/folder/exists")) {
      findings.push_back({Severity::kError, "files", host.name,
                          "the working folder does not exist on " + host.name, path,
                          "mount it there, say another with --wdir, or: mkdir -p " + path});
    } else if (!launch::facts::factFlag(host.facts, "/folder/writable")) {
      findings.push_back({Severity::kWarning, "files", host.name,
                          "nothing can be written to the working folder on " + host.name,
                          path + ": " + launch::facts::factText(host.facts, "/folder/error"),
                          writableAdvice(host, path)});
    } else if (launch::facts::factNumber(host.facts, "/folder/free", 1e18) < 256.0 * 1024 * 1024) {
      findings.push_back(
          {Severity::kWarning, "files", host.name,
           "the disk of the working folder is nearly full on " + host.name,
           launch::facts::describeBytes(launch::facts::factNumber(host.facts, "/folder/free")) +
               " free",
           "df -h " + path + "; remove what is not needed"});
    } else {
      char took[32];
      std::snprintf(took, sizeof(took), "%.1f ms",
                    launch::facts::factNumber(host.facts, "/folder/write_ms"));
      findings.push_back({Severity::kOk, "files", host.name, "working folder " + path,
                          std::string("writing and syncing 64 KiB took ") + took, ""});
    }
    if (!launch::facts::factFlag(host.facts, "/cache/writable", true)) {
      findings.push_back(
          {Severity::kWarning, "files", host.name,
           "Farandole cannot be copied to " + host.name + ": its cache folder cannot be made",
           launch::facts::factText(host.facts, "/cache/path") + ": " +
               launch::facts::factText(host.facts, "/cache/error"),
           "mkdir -m 700 /tmp/cache-$(id -u) and export XDG_CACHE_HOME=/tmp/cache-$(id -u) there, "
           "or "
           "install Farandole on it"});
    }
  }
  if (script) checkScript(input, findings);
  return findings;
}

}  // namespace farandole::doctor
