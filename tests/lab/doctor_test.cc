// farandole doctor on hosts that are well, and on hosts that are not: each trouble must be found,
// with its cause, what was seen and what to do, in bounded time and without leaving anything.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "lab/lab.h"
#include "paths.h"

namespace farandole::test {
namespace {

using nlohmann::json;
using std::chrono::seconds;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr double kMostSeconds = 30;

// A visit from h0, as a program reads it.
struct Visit {
  int code = -1;
  json report;
  std::string text;

  // The findings of this kind about a host ("" for any), one line each.
  std::vector<std::string> of(const std::string& severity, const std::string& host = "") const {
    std::vector<std::string> lines;
    for (const json& one : report["findings"]) {
      if (one["severity"] != severity || (!host.empty() && one["host"] != host)) continue;
      lines.push_back(one["check"].get<std::string>() + ": " + one["cause"].get<std::string>());
    }
    return lines;
  }
  int goodLinks() const {
    int count = 0;
    for (const json& link : report["links"]) count += link["ok"] == true ? 1 : 0;
    return count;
  }
};

Visit visit(const Lab& lab, const Words& words, const Words& before = {}) {
  Words all = before;
  all.insert(all.end(), {test::paths::kCommand, "doctor", "--json"});
  all.insert(all.end(), words.begin(), words.end());
  const Outcome outcome = lab.run("h0", all);
  Visit result;
  result.code = outcome.code;
  result.text = outcome.out + outcome.err;
  result.report = json::parse(outcome.out, nullptr, false);
  EXPECT_FALSE(outcome.timedOut);
  EXPECT_EQ(outcome.err, "");
  if (!result.report.is_object() || !result.report["findings"].is_array()) {
    ADD_FAILURE() << "not a report: " << result.text;
    result.report = {{"findings", json::array()}, {"links", json::array()}, {"seconds", 1e9}};
  }
  EXPECT_LE(result.report["seconds"].get<double>(), kMostSeconds);
  return result;
}

// Exactly one finding like this, and it says what was seen and what to do.
void expectTrouble(const Visit& visit, const std::string& severity, const std::string& check,
                   const std::string& host, const std::string& cause, const std::string& seen,
                   const std::string& fix) {
  int found = 0;
  for (const json& one : visit.report["findings"]) {
    if (one["check"] != check || one["host"] != host || one["severity"] == "ok") continue;
    if (one["cause"].get<std::string>().find(cause) == std::string::npos) continue;
    ++found;
    EXPECT_EQ(one["severity"], severity) << one;
    EXPECT_THAT(one["evidence"].get<std::string>(), HasSubstr(seen)) << one;
    EXPECT_THAT(one["fix"].get<std::string>(), HasSubstr(fix)) << one;
  }
  EXPECT_EQ(found, 1) << check << " of " << host << ": '" << cause << "' in\n"
                      << testing::PrintToString(visit.of("error")) << "\n"
                      << testing::PrintToString(visit.of("warning"));
}

void expectIdle(const Lab& lab, int hosts) {
  for (int i = 0; i < hosts; ++i) {
    const std::string host = "h" + std::to_string(i);
    EXPECT_THAT(lab.processesAfter(host, seconds(5)), IsEmpty()) << host;
  }
}

TEST(LabDoctor, HostsThatAreWell) {
  LAB_OR_SKIP();
  const Lab lab({.more = {"--docker0"}});
  lab.writeFile("h0", "/root/hosts", "h0 slots=1\nh1:1\nh2 slots=2\n");
  const Visit all = visit(lab, {"--hostfile", "/root/hosts", "-np", "4"});
  EXPECT_EQ(all.code, 0) << all.text;
  EXPECT_THAT(all.of("error"), IsEmpty());
  EXPECT_THAT(all.of("warning"), IsEmpty()) << all.text;
  EXPECT_EQ(all.report["hosts"].size(), 3U);
  EXPECT_EQ(all.goodLinks(), 6) << all.report["links"];
  for (const json& link : all.report["links"]) {
    EXPECT_THAT(link["address"].get<std::string>(), HasSubstr("10.77.0.")) << "not docker0";
  }

  const Outcome table =
      lab.run("h0", {test::paths::kCommand, "doctor", "-H", "h0,h1,h2", "--strict"});
  EXPECT_EQ(table.code, 0) << table.out;
  EXPECT_THAT(table.out, AllOf(HasSubstr("6 of 6 directions work"),
                               HasSubstr("3 hosts, 0 errors, 0 warnings")));
  EXPECT_THAT(table.out, Not(HasSubstr("\x1b[")));
  EXPECT_THAT(table.out, AllOf(HasSubstr("allreduce on 3 hosts gives the right sums"),
                               HasSubstr("from row to column"), HasSubstr(" MB/s")));
  for (const char* way : {"us", "mb_per_s"}) {
    ASSERT_EQ(all.report["collective"][way].size(), 3U) << all.report["collective"];
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j < 3; ++j) {
        const json& value = all.report["collective"][way][i][j];
        EXPECT_EQ(value.is_number(), i != j) << way << " " << i << " " << j;
        EXPECT_TRUE(i == j || value.get<double>() > 0);
      }
    }
  }

  // Ranks get our PATH, and with it our virtual environment, where it exists.
  for (const char* host : {"h0", "h1"}) {
    lab.shell(host, "mkdir -p ~/venv/bin && ln -s $(command -v python3) ~/venv/bin/python3");
  }
  const Visit active = visit(lab, {"-H", "h0,h1,h2"}, {"env", "PATH=/root/venv/bin:/usr/bin:/bin"});
  expectTrouble(active, "warning", "software", "h2", "another python3",
                "others: /root/venv/bin/python3", "environment");
  EXPECT_EQ(active.of("warning").size(), 1U) << testing::PrintToString(active.of("warning"));
  expectIdle(lab, 3);
}

// Eight hosts, of which one is filtered, and each of the others has a trouble of its own.
TEST(LabDoctor, HostsThatSshDoesNotReach) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 8});
  lab.sshd("h2", false);
  lab.must("port", {"h3", "12345", "drop"});
  lab.shell("h0",
            "cd ~/.ssh && sed -i '/h4\\]/d' known_hosts"
            " && one=$(sed -n '/h1\\]/s/.*ssh-ed25519 //p' known_hosts)"
            " && sed -i \"s|\\(.*h6.*ssh-ed25519\\) .*|\\1 $one|\" known_hosts"
            " && cp id_ed25519 open && chmod 644 open"
            " && printf 'Host h5\\n IdentityFile ~/.ssh/open\\n IdentitiesOnly yes\\n' >> config");
  lab.shell("h7", ": > ~/.ssh/authorized_keys");
  const Visit eight = visit(lab, {"-H", "h0,h1,h2,h3,h4,h5,h6,h7"});
  EXPECT_EQ(eight.code, 2);
  expectTrouble(eight, "error", "tcp", "h2", "nothing listens on port 12345 of h2",
                "Connection refused", "ss -ltn");
  expectTrouble(eight, "error", "tcp", "h3", "h3", "filtered", "firewall");
  expectTrouble(eight, "error", "ssh", "h4", "the key of h4", "host key is known", "ssh-keyscan");
  expectTrouble(eight, "error", "ssh", "h5", "/root/.ssh/open", "too open",
                "chmod 600 /root/.ssh/open");
  expectTrouble(eight, "error", "ssh", "h6", "NOT the one known here", "changed", "ssh-keygen");
  expectTrouble(eight, "error", "ssh", "h7", "none of our keys", "Permission denied",
                "authorized_keys");
  EXPECT_EQ(eight.of("error").size(), 6U) << testing::PrintToString(eight.of("error"));
  EXPECT_EQ(eight.goodLinks(), 2) << "between h0 and h1";
  expectIdle(lab, 8);

  const Visit unknown = visit(lab, {"-H", "h0,nosuchhost,10.77.0.99"});
  EXPECT_EQ(unknown.code, 2);
  expectTrouble(unknown, "error", "names", "nosuchhost", "nosuchhost", "name",
                "getent hosts nosuchhost");
  EXPECT_EQ(unknown.of("error", "10.77.0.99").size(), 1U) << unknown.text;
}

TEST(LabDoctor, NamesThatMislead) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 4,
                 .more = {"--hostname", "h1=box,h2=box", "--loopback-name", "h3", "--docker0",
                          "--shm", "64m"}});
  const Visit all = visit(lab, {"-H", "h0,10.77.0.11,10.77.0.12,h3"});
  EXPECT_EQ(all.code, 0) << all.text;
  expectTrouble(all, "warning", "machines", "10.77.0.12", "both call themselves box", "hostname",
                "--hostname NAME");
  expectTrouble(all, "warning", "names", "h3", "h3 means loopback on h3", "127.0.1.1",
                "\"10.77.0.13 h3\"");
  expectTrouble(all, "warning", "limits", "h3", "/dev/shm of h3 is small", "64 MiB", "--shm-size");
  EXPECT_EQ(all.goodLinks(), 12);

  // One machine under two names.
  const Visit twice = visit(lab, {"-H", "h0,h3,10.77.0.13"});
  expectTrouble(twice, "warning", "machines", "10.77.0.13", "are the same machine", "boot id",
                "name it once");
  expectIdle(lab, 4);
}

TEST(LabDoctor, FilesAndHomes) {
  LAB_OR_SKIP();
  // Only h0 has Farandole: the others get it from there, if they let it in.
  const Lab lab({.hosts = 5, .more = {"--hide", test::paths::kSource}});
  for (const char* host : {"h0", "h1", "h3", "h4"}) {
    lab.shell(host, "mkdir /tmp/job");
    lab.writeFile(host, "/tmp/job/train.py", "print(1)\n");
  }
  lab.writeFile("h1", "/tmp/job/train.py", "print(2)\n");
  lab.writeFile("h1", "/root/.bashrc", "echo welcome to h1\n");
  ASSERT_EQ(lab.shell("h3", "mount --bind /root /root && mount -o remount,ro,bind /root").code, 0);
  ASSERT_EQ(lab.shell("h4", "mount -t tmpfs -o ro none /tmp/job").code, 0);
  const Visit all =
      visit(lab, {"-H", "h0,h1,h2,h3,h4", "--wdir", "/tmp/job", "--script", "/tmp/job/train.py"});
  EXPECT_EQ(all.code, 2);
  expectTrouble(all, "error", "files", "h1", "another content of the script",
                "elsewhere:", "scp /tmp/job/train.py h1:/tmp/job/train.py");
  expectTrouble(all, "warning", "ssh", "h1", "prints on stdout", "welcome to h1", ".bashrc");
  expectTrouble(all, "error", "files", "h2", "the working folder does not exist", "/tmp/job",
                "mkdir -p /tmp/job");
  expectTrouble(all, "error", "agent", "h3", "could not be started", "Read-only file system",
                "XDG_CACHE_HOME");
  expectTrouble(all, "warning", "files", "h4", "nothing can be written", "Read-only", "--wdir");
  expectTrouble(all, "error", "files", "h4", "the script cannot be read on h4", "No such file",
                "scp");
  expectIdle(lab, 5);
}

TEST(LabDoctor, LinksThatAreCut) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 4, .more = {"--docker0"}});
  lab.must("cut", {"h1", "h2"});
  lab.must("port", {"h3", "1024-12344", "drop"});
  const Visit all = visit(lab, {"-H", "h0,h1,h2", "--strict"});
  EXPECT_EQ(all.code, 2);
  expectTrouble(all, "error", "links", "h1", "h1 → h2: no address can be reached", "10.77.0.12",
                "open ");
  expectTrouble(all, "error", "links", "h2", "h2 → h1: no address can be reached", "10.77.0.11",
                "open ");
  EXPECT_EQ(all.of("error").size(), 2U) << testing::PrintToString(all.of("error"));
  EXPECT_EQ(all.goodLinks(), 4);
  lab.must("heal");

  // A firewall that lets ssh through, and nothing of the job.
  const Visit closed = visit(lab, {"-H", "h0,h3", "--port-range", "9000-9009"});
  EXPECT_EQ(closed.code, 2);
  expectTrouble(closed, "error", "links", "h0", "h0 → h3", "10.77.0.13", "9000-9009");
  EXPECT_EQ(visit(lab, {"-H", "h0,h3", "--port-range", "20000-20009"}).code, 0);
  expectIdle(lab, 4);
}

// Containers on the bridges of two machines: each is 172.17.0.2, and reaches itself there.
TEST(LabDoctor, HostsWithTheSameAddress) {
  LAB_OR_SKIP();
  const Lab lab(
      {.hosts = 2, .more = {"--bridged", "h0:30000-30009", "--bridged", "h1:30000-30009"}});
  const Visit shut = visit(lab, {"-H", "h0,h1", "--port-range", "40000-40009"});
  EXPECT_EQ(shut.code, 2);
  EXPECT_EQ(shut.goodLinks(), 0);
  const std::string run = "farandole run --advertise h0=10.77.0.10,h1=10.77.0.11 --data-ports ";
  expectTrouble(shut, "error", "links", "h0", "h0 → h1: 172.17.0.2 leads to h0 itself",
                "10.77.0.11", run + "40000-40009");
  expectTrouble(shut, "error", "links", "h1", "h1 → h0: 172.17.0.2 leads to h1 itself",
                "10.77.0.10", run + "40000-40009");
  // On any port, too, where an address of their own tells nothing.
  const Visit free = visit(lab, {"-H", "h0,h1"});
  EXPECT_EQ(free.code, 2);
  expectTrouble(free, "error", "links", "h0", "h0 → h1: 172.17.0.2 leads to h0 itself",
                "10.77.0.11", "docker run -p 29400-29431:29400-29431");
  expectTrouble(free, "error", "links", "h1", "h1 → h0: 172.17.0.2 leads to h1 itself",
                "10.77.0.10", run + "29400-29431");
  // Through the ports that their machines pass on, and then as it says.
  const Visit found = visit(lab, {"-H", "h0,h1", "--port-range", "30000-30009"});
  EXPECT_EQ(found.code, 0) << found.text;
  EXPECT_EQ(found.goodLinks(), 2);
  expectTrouble(found, "warning", "links", "", "h0=10.77.0.10,h1=10.77.0.11", "",
                run + "30000-30009");
  EXPECT_THAT(found.of("ok"), Contains(HasSubstr("allreduce on 2 hosts gives the right sums")));
  expectIdle(lab, 2);
}

TEST(LabDoctor, BehindAGateway) {
  LAB_OR_SKIP();
  const Lab lab({.more = {"--nat", "h2:30000-30009"}});
  const Visit shut = visit(lab, {"-H", "h0,h1,h2", "--port-range", "40000-40009"});
  EXPECT_EQ(shut.code, 2);
  expectTrouble(shut, "error", "links", "h0", "h0 → h2: no address can be reached", "192.168.102.2",
                "--network host");
  expectTrouble(shut, "error", "links", "h1", "h1 → h2: no address can be reached", "192.168.102.2",
                "--network host");
  EXPECT_EQ(shut.goodLinks(), 4) << "out it can";
  // Through the ports that the gateway passes on; the doctor finds that out, or is told.
  const Visit found = visit(lab, {"-H", "h2,h0,h1", "--port-range", "30000-30009"});
  EXPECT_EQ(found.code, 0) << found.text;
  expectTrouble(found, "warning", "links", "", "h2=10.77.0.254", "",
                "farandole run --advertise h2=10.77.0.254 --data-ports 30000-30009");
  EXPECT_EQ(found.goodLinks(), 6);
  const Visit told = visit(lab, {"-H", "h2,h0,h1", "--port-range", "30000-30009", "--advertise",
                                 "h2=10.77.0.254", "--strict"});
  EXPECT_EQ(told.code, 0) << told.text;
  EXPECT_THAT(told.of("ok"), Contains(HasSubstr("allreduce on 3 hosts gives the right sums")));
  expectIdle(lab, 3);
}

}  // namespace
}  // namespace farandole::test
