#include "doctor/checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace farandole::doctor {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// A host in good order; tests spoil one thing at a time.
json healthy(const std::string& name, int number) {
  const std::string address = "10.0.0." + std::to_string(number);
  return json{
      {"version", "1.0"},
      {"time", 1000.0},
      {"machine",
       {{"hostname", name},
        {"boot_id", "boot-" + name},
        {"net_ns", 1},
        {"pid_ns", 1},
        {"arch", "x86_64"},
        {"uid", 1000},
        {"in_passwd", true}}},
      {"own_name", {{"addresses", {address}}}},
      {"names", json::object()},
      {"interfaces",
       {{{"name", "eth0"},
         {"kind", "card"},
         {"up", true},
         {"mtu", 1500},
         {"addresses", {{{"address", address}, {"prefix", 24}}}}}}},
      {"container", {{"kind", "none"}, {"network", "host"}}},
      {"limits",
       {{"memlock", {{"soft", "unlimited"}}},
        {"nofile", {{"hard", 65536}}},
        {"dev_shm", {{"bytes", 8e9}, {"free", 8e9}}}}},
      {"memory", {{"total", 64e9}, {"available", 60e9}, {"cgroup_limit", 0}}},
      {"cpus",
       {{"allowed", 8}, {"cpuset", "0-7"}, {"cores", 4}, {"numa_nodes", 1}, {"quota", 0.0}}},
      {"ssh", {{"uid", 1000}, {"path", "/home/dev/.ssh"}, {"writable", true}}},
      {"devices", {{"render", json::array()}, {"nvidia", json::array()}}},
      {"surroundings", {{"variables", json::array()}, {"mode", "none"}, {"istio", false}}},
      {"locale", {{"name", "C.UTF-8"}, {"valid", true}}},
      {"python", {{"version", "3.11.2"}, {"executable", "/usr/bin/python3"}}},
      {"open_mpi", {{"version", ""}}},
      {"folder", {{"path", "/work"}, {"exists", true}, {"writable", true}, {"free", 1e12}}},
      {"cache", {{"path", "/home/dev/.cache/farandole"}, {"writable", true}}}};
}

CheckInput pair() {
  CheckInput input;
  input.hosts.resize(2);
  input.hosts[0] = {"alpha", 4, true, healthy("alpha", 1), 1000.0};
  input.hosts[1] = {"beta", 4, false, healthy("beta", 2), 1000.0};
  return input;
}

Findings bad(const Findings& findings) {
  Findings result;
  for (const Finding& finding : findings) {
    if (finding.severity != Severity::kOk) result.push_back(finding);
  }
  return result;
}

// Exactly one complaint, complete, about beta.
void expectOne(const CheckInput& input, Severity severity, const std::string& cause,
               const std::string& fix) {
  const Findings findings = bad(checkAll(input));
  ASSERT_EQ(findings.size(), 1U) << (findings.empty() ? "none" : findings[1].cause);
  EXPECT_EQ(findings[0].severity, severity);
  EXPECT_THAT(findings[0].cause, HasSubstr(cause));
  EXPECT_THAT(findings[0].fix, HasSubstr(fix));
}

TEST(Checks, GoodHostsGiveNoComplaint) {
  CheckInput input = pair();
  input.ranks = 8;
  EXPECT_TRUE(bad(checkAll(input)).empty());
  EXPECT_GE(checkAll(input).size(), 10U) << "but it is told what was looked at";
}

TEST(Checks, FactsThatAreMissingOrMalformedDoNotBreakThem) {
  CheckInput input = pair();
  for (const char* text : {"null", "{}", "[]", "3", R"({"machine":3,"names":[1],"interfaces":{}})",
                           R"({"interfaces":[1,{"addresses":3},{"addresses":[1]}],"ssh":[]})"}) {
    input.hosts[1].facts = json::parse(text);
    EXPECT_FALSE(checkAll(input).empty());
  }
}

TEST(Checks, MoreRanksThanSlots) {
  CheckInput input = pair();
  input.ranks = 9;
  const Findings findings = bad(checkInputs(input));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].severity, Severity::kError);
  EXPECT_THAT(findings[0].cause, HasSubstr("-np 9 is more than the 8 slots"));
  EXPECT_THAT(findings[0].fix, HasSubstr("-np 8"));
}

TEST(Checks, AHostWithoutRanks) {
  CheckInput input = pair();
  input.ranks = 4;
  EXPECT_EQ(ranksOn(input, 0), 4);
  EXPECT_EQ(ranksOn(input, 1), 0);
  expectOne(input, Severity::kWarning, "leaves beta without a rank", "-np 8");
}

TEST(Checks, TheSameMachineUnderTwoNames) {
  CheckInput input = pair();
  input.hosts[1].facts["machine"] = input.hosts[0].facts["machine"];
  expectOne(input, Severity::kWarning, "are the same machine", "once");
}

TEST(Checks, TwoMachinesWithOneName) {
  CheckInput input = pair();
  input.hosts[1].facts["machine"]["hostname"] = "alpha";
  expectOne(input, Severity::kWarning, "both call themselves alpha", "--hostname");
}

TEST(Checks, TheLoopbackTrap) {
  CheckInput input = pair();
  input.hosts[1].facts["own_name"]["addresses"] = {"127.0.1.1"};
  expectOne(input, Severity::kWarning, "beta means loopback", "10.0.0.2 beta");
}

TEST(Checks, ANameThatMeansLoopbackElsewhereIsAnError) {
  CheckInput input = pair();
  input.hosts[1].facts["names"] = {{"alpha", {{"addresses", {"127.0.0.1"}}}}};
  expectOne(input, Severity::kError, "alpha means loopback on beta", "/etc/hosts");
}

TEST(Checks, AWorkerThatCannotResolveTheOther) {
  CheckInput input = pair();
  input.hosts[1].facts["names"] = {{"alpha", {{"error", "Name or service not known"}}}};
  expectOne(input, Severity::kWarning, "beta cannot resolve alpha", "/etc/hosts");
  input.hosts[0].sshHost = "10.0.0.1";  // alpha is only an alias of ssh_config
  EXPECT_TRUE(bad(checkAll(input)).empty());
}

TEST(Checks, ANameServerThatDoesNotAnswer) {
  CheckInput input = pair();
  input.hosts[1].facts["names"] = {{"timed_out", true}};
  expectOne(input, Severity::kWarning, "the name server of beta did not answer", "resolv.conf");
  input.hosts[1].facts["names"] = {{"alpha", {{"timed_out", true}}}};
  expectOne(input, Severity::kWarning, "the name server of beta did not answer", "hosts alpha");
}

TEST(Checks, DifferentMtu) {
  CheckInput input = pair();
  input.hosts[1].facts["interfaces"][0]["mtu"] = 9000;
  expectOne(input, Severity::kWarning, "differ in their MTU", "mtu 1500");
}

TEST(Checks, NoNetworkAtAll) {
  CheckInput input = pair();
  input.hosts[1].facts["interfaces"][0]["kind"] = "container-bridge";
  expectOne(input, Severity::kError, "no interface that leads", "--network host");
}

TEST(Checks, AnotherVersion) {
  CheckInput input = pair();
  input.hosts[1].facts["version"] = "0.9";
  expectOne(input, Severity::kError, "beta has another Farandole version", "--push");
}

TEST(Checks, AnotherScript) {
  CheckInput input = pair();
  input.hosts[0].facts["script"] = {{"sha256", "aa"}};
  input.hosts[1].facts["script"] = {{"sha256", "bb"}};
  expectOne(input, Severity::kError, "beta has another content of the script", "scp");
  input.hosts[1].facts["script"] = {{"path", "/job/train.py"}, {"error", "No such file"}};
  expectOne(input, Severity::kError, "cannot be read on beta",
            "scp /job/train.py beta:/job/train.py");
}

TEST(Checks, NoWorkingFolder) {
  CheckInput input = pair();
  input.hosts[1].facts["folder"] = {{"path", "/work"}, {"exists", false}};
  expectOne(input, Severity::kError, "does not exist on beta", "mkdir -p /work");
}

TEST(Checks, KeyModes) {
  CheckInput input = pair();
  input.hosts[1].facts["ssh"]["keys"] = {
      {{"path", "/home/dev/.ssh/id_ed25519"}, {"mode", "0640"}, {"uid", 1000}}};
  expectOne(input, Severity::kWarning, "too open", "chmod 600 /home/dev/.ssh/id_ed25519");
  input.hosts[1].facts["ssh"]["keys"][0]["mode"] = "0600";
  EXPECT_TRUE(bad(checkAll(input)).empty());
  input.hosts[1].facts["ssh"]["keys"][0]["uid"] = 1001;
  expectOne(input, Severity::kWarning, "belongs to another user", "chown 1000");
}

TEST(Checks, ABridgedContainer) {
  CheckInput input = pair();
  input.hosts[1].facts["container"] = {{"kind", "docker"}, {"network", "own"}};
  EXPECT_TRUE(bad(checkAll(input)).empty()) << "the others reach it";
  input.hosts[1].unreached = true;
  expectOne(input, Severity::kWarning, "network of its own", "--port-range");
  input.hosts[1].facts["container"]["kind"] = "kubernetes";
  EXPECT_TRUE(bad(checkAll(input)).empty()) << "pods reach each other";
}

TEST(Checks, DockersSmallSharedMemory) {
  CheckInput input = pair();
  input.hosts[1].facts["limits"]["dev_shm"]["bytes"] = 64 << 20;
  expectOne(input, Severity::kWarning, "/dev/shm of beta is small", "--shm-size");
}

TEST(Checks, AQuotaCountsLikeMissingCpus) {
  CheckInput input = pair();
  input.hosts[1].facts["cpus"]["quota"] = 2.5;
  expectOne(input, Severity::kWarning, "more than beta has CPUs for", "at most 2 slots");
  input.hosts[1].facts["cpus"]["quota"] = 4.0;
  EXPECT_TRUE(bad(checkAll(input)).empty());
  input.threads = 2;
  expectOne(input, Severity::kWarning, "with 2 threads", "--threads 1");
}

TEST(Checks, LittleMemory) {
  CheckInput input = pair();
  input.hosts[1].facts["memory"]["cgroup_limit"] = 512 << 20;
  expectOne(input, Severity::kWarning, "little memory for 4", "--memory");
}

TEST(Checks, ClockSkew) {
  CheckInput input = pair();
  input.hosts[1].facts["time"] = 1010.0;
  expectOne(input, Severity::kWarning, "clock of beta differs", "set-ntp");
}

TEST(Checks, RenderDevicesThatMayNotBeOpened) {
  CheckInput input = pair();
  input.hosts[1].facts["devices"]["render_refused"] = {"/dev/dri/renderD128"};
  input.hosts[1].facts["devices"]["render_gid"] = "109";
  expectOne(input, Severity::kWarning, "may not be opened", "--group-add 109");
}

TEST(Checks, IstioAndOpenMpi5) {
  CheckInput input = pair();
  input.hosts[1].facts["surroundings"]["istio"] = true;
  expectOne(input, Severity::kWarning, "Istio", "sidecar.istio.io/inject");
  input = pair();
  input.hosts[1].facts["open_mpi"]["version"] = "5.0.3";
  input.hosts[1].facts["surroundings"]["variables"] = {"OMPI_MCA_orte_default_hostfile"};
  expectOne(input, Severity::kWarning, "Open MPI 5.0.3 ignores", "PRTE_MCA_");
  input.hosts[1].facts["open_mpi"]["version"] = "4.1.4";
  EXPECT_TRUE(bad(checkAll(input)).empty());
}

}  // namespace
}  // namespace farandole::doctor
