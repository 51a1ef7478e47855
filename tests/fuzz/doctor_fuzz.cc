// Fuzzes the JSON of the doctor. The first byte chooses: a request for facts, or the facts of two
// hosts, one per line, which are judged and reported. Nothing of theirs may steer a terminal.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "doctor/checks.h"
#include "doctor/diagnosis.h"
#include "doctor/report.h"
#include "fuzz.h"
#include "launch/facts/facts.h"

namespace farandole::fuzz {
namespace {

using launch::facts::toJson;

using nlohmann::json;

bool runRequest(std::string_view input) {
  const json asked = json::parse(input, nullptr, false);
  if (asked.is_discarded()) return false;
  auto request = launch::facts::factsRequestFromJson(asked);
  if (!request.ok()) {
    requireOneLine(request.status().message());
    return false;
  }
  auto again = launch::facts::factsRequestFromJson(toJson(*request));
  require(again.ok() && again->names == request->names && again->folder == request->folder &&
          again->script == request->script);
  return true;
}

bool runFacts(std::string_view input) {
  doctor::CheckInput checked;
  checked.ranks = 4;
  checked.threads = 2;
  for (int i = 0; i < 2; ++i) {
    const auto end = std::min(input.find('\n'), input.size());
    doctor::HostFacts host;
    host.name = i == 0 ? "a" : "b";
    host.slots = 2;
    host.local = i == 0;
    host.facts = json::parse(input.substr(0, end), nullptr, false);
    if (host.facts.is_discarded()) return false;
    host.arrived = 1.7e9;
    checked.hosts.push_back(std::move(host));
    input.remove_prefix(std::min(end + 1, input.size()));
  }
  doctor::Diagnosis diagnosis;
  for (const doctor::HostFacts& host : checked.hosts)
    diagnosis.hosts.push_back({{"name", host.name}});
  if (!checked.hosts.empty()) diagnosis.collective = checked.hosts.front().facts;
  diagnosis.findings = doctor::checkAll(checked);
  require(!diagnosis.findings.empty());
  for (const doctor::Finding& finding : diagnosis.findings) requireOneLine(finding.cause);
  const std::string table = doctor::reportTable(diagnosis, false);
  require(std::none_of(table.begin(), table.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\n') || byte == 0x7f;
  }));
  const json report = doctor::reportJson(diagnosis, doctor::exitCodeOf(diagnosis.findings, true));
  require(!report.dump(-1, ' ', true, json::error_handler_t::replace).empty());
  return true;
}

json facts(const char* name, const char* address) {
  return {
      {"version", "0.1.0"},
      {"time", 1.7e9},
      {"cache", {{"path", "/home/u/.cache"}, {"writable", true}, {"free", 1 << 30}}},
      {"container", {{"kind", "docker"}, {"network", "bridge"}, {"evidence", "/.dockerenv"}}},
      {"cpus",
       {{"allowed", 2}, {"cores", 2}, {"cpuset", "0-1"}, {"numa_nodes", 1}, {"quota", 1.5}}},
      {"devices",
       {{"nvidia", {"/dev/nvidia0"}},
        {"render", {"/dev/dri/renderD128"}},
        {"render_gid", "44"},
        {"render_refused", {"/dev/dri/renderD129"}}}},
      {"folder",
       {{"exists", true},
        {"free", 66696286208},
        {"path", "/home/u"},
        {"writable", true},
        {"write_ms", 8.2}}},
      {"interfaces",
       {{{"addresses", {{{"address", address}, {"prefix", 24}}}},
         {"kind", "card"},
         {"mtu", 1500},
         {"name", "eth0"},
         {"running", true},
         {"up", true}}}},
      {"limits",
       {{"dev_shm", {{"bytes", 67108864}, {"free", 67108864}}},
        {"memlock", {{"hard", 65536}, {"soft", 65536}}},
        {"nofile", {{"hard", 1024}, {"soft", 1024}}}}},
      {"locale", {{"name", "C.UTF-8"}, {"valid", true}}},
      {"machine",
       {{"arch", "x86_64"},
        {"boot_id", name},
        {"hostname", name},
        {"in_passwd", true},
        {"net_ns", 1},
        {"pid_ns", 2},
        {"uid", 1000}}},
      {"memory", {{"available", 23492198400}, {"cgroup_limit", 1 << 30}, {"total", 25274793984}}},
      {"names", {{"a", {{"addresses", {"10.0.0.1"}}}}, {"b", {{"error", "unknown"}}}}},
      {"open_mpi", {{"version", "4.1.4"}}},
      {"own_name", {{"addresses", {"127.0.1.1"}}, {"name", name}}},
      {"python", {{"version", "3.11.2"}, {"virtual_env", ""}}},
      {"script", {{"path", "train.py"}, {"sha256", "00"}}},
      {"ssh",
       {{"home", {{"mode", "0755"}, {"path", "/home/u"}, {"uid", 1000}}},
        {"folder", {{"mode", "0777"}, {"path", "/home/u/.ssh"}, {"uid", 0}}},
        {"keys", {{{"mode", "0644"}, {"path", "/home/u/.ssh/id"}, {"uid", 1000}}}},
        {"uid", 1000},
        {"writable", false}}},
      {"surroundings", {{"istio", true}, {"mode", "slurm"}, {"variables", {"SLURM_JOB_ID"}}}}};
}

}  // namespace

std::vector<std::string> seeds() {
  const std::string a = facts("a", "10.0.0.1").dump();
  const std::string b = facts("b", "10.0.0.2").dump();
  return {choose(0, toJson(launch::facts::FactsRequest{{"a", "b"}, "/home", "train.py"}).dump()),
          choose(0, toJson(launch::facts::FactsRequest{}).dump()), choose(1, a + "\n" + b),
          choose(1, "null\n" + a), choose(1, "{}\n{}")};
}

bool run(std::string_view input) {
  if (input.empty()) return false;
  const char what = input.front();
  input.remove_prefix(1);
  return what == 0 ? runRequest(input) : runFacts(input);
}

}  // namespace farandole::fuzz
