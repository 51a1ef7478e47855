// The laboratory itself: hosts as told, and commands on them.
#include "lab/lab.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>

#include "paths.h"

namespace farandole::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Lab, HostsReachEachOtherWithoutPrompts) {
  LAB_OR_SKIP();
  const Lab lab;
  EXPECT_TRUE(lab.reaches("h0", "h2"));
  EXPECT_TRUE(lab.reaches("h2", "h1"));
  for (const char* to : {"h1", "10.77.0.12"}) {
    const Outcome there = lab.ssh("h0", {to, "hostname"});
    EXPECT_EQ(there.out, to[0] == 'h' ? "h1\n" : "h2\n");
    EXPECT_EQ(there.err, "");
    EXPECT_EQ(there.code, 0);
  }
}

TEST(Lab, HostsShareNoFilesButTheMachines) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 2});
  for (const char* folder : {"/tmp", "/dev/shm", "/run", "/root", "/root/.cache", "/var/tmp"}) {
    const std::string path = std::string(folder) + "/only-here";
    lab.writeFile("h0", path, "x");
    EXPECT_EQ(lab.readFile("h0", path), "x");
    EXPECT_EQ(lab.run("h0", {"test", "-e", path}).code, 0) << path;
    EXPECT_EQ(lab.run("h1", {"test", "-e", path}).code, 1) << path;
    EXPECT_FALSE(std::filesystem::exists(path));
  }
  EXPECT_EQ(lab.run("h1", {"test", "-x", test::paths::kLabTool}).code, 0);
  for (const char* id : {"/etc/machine-id", "/proc/sys/kernel/random/boot_id", "/etc/hostname"}) {
    EXPECT_NE(lab.run("h0", {"cat", id}).out, lab.run("h1", {"cat", id}).out) << id;
  }
}

TEST(Lab, NamesAndInterfacesAsTold) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 4,
                 .more = {"--hostname", "h1=box,h2=box,h3=alpha", "--interface",
                          "h1=ens5,h2=enp3s0", "--loopback-name", "h1", "--docker0"}});
  EXPECT_EQ(lab.run("h0", {"hostname"}).out, "h0\n");
  EXPECT_EQ(lab.run("h1", {"hostname"}).out, "box\n");
  EXPECT_EQ(lab.ssh("h0", {"h2", "hostname"}).out, "box\n");
  EXPECT_EQ(lab.ssh("h0", {"alpha", "hostname"}).out, "alpha\n");
  EXPECT_THAT(lab.run("h1", {"getent", "hosts", "box"}).out, HasSubstr("127.0.1.1"));
  EXPECT_THAT(lab.run("h2", {"getent", "hosts", "box"}).out, HasSubstr("10.77.0.12"));
  EXPECT_THAT(lab.run("h1", {"ls", "/sys/class/net"}).out, HasSubstr("ens5"));
  EXPECT_THAT(lab.run("h1", {"ip", "addr", "show", "ens5"}).out, HasSubstr("10.77.0.11/24"));
  EXPECT_THAT(lab.run("h2", {"ip", "addr", "show", "enp3s0"}).out, HasSubstr("10.77.0.12/24"));
  for (const char* host : {"h0", "h1"}) {
    EXPECT_THAT(lab.run(host, {"ip", "addr", "show", "docker0"}).out, HasSubstr("172.17.0.1/16"));
  }
}

TEST(Lab, BothFamiliesOrOnlyTheNewOne) {
  LAB_OR_SKIP();
  {
    const Lab lab({.hosts = 2, .more = {"--ipv6"}});
    EXPECT_TRUE(lab.reaches("h0", "fd00::11"));
    EXPECT_TRUE(lab.reaches("h0", "10.77.0.11"));
    EXPECT_EQ(lab.ssh("h0", {"h1.v6", "echo $SSH_CONNECTION"}).out.substr(0, 8), "fd00::10");
  }
  const Lab lab({.hosts = 2, .more = {"--ipv6-only"}});
  EXPECT_EQ(lab.ssh("h0", {"h1", "hostname"}).out, "h1\n");
  EXPECT_FALSE(lab.reaches("h0", "10.77.0.11"));
  EXPECT_EQ(lab.must("address", {"h1"}), "fd00::11\n");
}

TEST(Lab, HiddenFolderIsOnlyOnTheFirstHost) {
  LAB_OR_SKIP();
  const std::string tool = test::paths::kLabTool;
  const std::string folder = tool.substr(0, tool.rfind('/'));
  const Lab lab({.hosts = 2, .more = {"--hide", folder}});
  EXPECT_EQ(lab.run("h0", {"test", "-e", tool}).code, 0);
  EXPECT_EQ(lab.run("h1", {"test", "-e", tool}).code, 1);
}

TEST(Lab, CommandsKeepInputOutputCodeAndFolder) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 1});
  Command::Options options;
  options.input = "a line\n";
  options.folder = "/usr/share";
  const Outcome outcome = lab.run("h0", {"sh", "-c", "cat; pwd; echo wrong >&2; exit 7"}, options);
  EXPECT_EQ(outcome.out, "a line\n/usr/share\n");
  EXPECT_EQ(outcome.err, "wrong\n");
  EXPECT_EQ(outcome.code, 7);
  EXPECT_EQ(lab.run("h0", {"sh", "-c", "kill -9 $$"}).code, 128 + SIGKILL);
  EXPECT_EQ(lab.run("h0", {"sh", "-c", "kill -9 $$"}).err, "");
  EXPECT_EQ(lab.run("h0", {"no-such-command"}).code, 127);
  EXPECT_EQ(lab.run("h7", {"true"}).code, 1);
}

TEST(Lab, CommandsGetSignalsAndEndInTime) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 1});
  for (const int number : {SIGINT, SIGTERM}) {
    const auto process = lab.start(
        "h0", {"bash", "-c",
               "trap 'echo two; exit 3' INT; trap 'echo fifteen; exit 4' TERM; echo ready; "
               "while :; do read -t 0.05 <> <(:); done"});
    ASSERT_TRUE(process->waitForOutput("ready"));
    EXPECT_FALSE(lab.processes("h0").empty());
    process->signal(number);
    const Outcome outcome = process->finish();
    EXPECT_EQ(outcome.code, number == SIGINT ? 3 : 4) << outcome.err;
  }
  const Outcome late = lab.run("h0", {"sleep", "77"}, milliseconds(200));
  EXPECT_TRUE(late.timedOut);
  EXPECT_THAT(lab.processesAfter("h0", seconds(5)), IsEmpty());
}

TEST(Lab, ProcessesSeesOrphansAndInitReapsThem) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 2});
  EXPECT_THAT(lab.processes("h1"), IsEmpty());
  EXPECT_EQ(lab.ssh("h0", {"h1", "setsid sleep 77 </dev/null >/dev/null 2>&1 &"}).code, 0);
  EXPECT_THAT(lab.processes("h0"), IsEmpty());
  ASSERT_THAT(lab.processes("h1"), ElementsAre(HasSubstr("sleep 77")));
  EXPECT_EQ(lab.shell("h1", "kill " + std::to_string(std::stoi(lab.processes("h1")[0]))).code, 0);
  EXPECT_THAT(lab.processesAfter("h1", seconds(5)), IsEmpty());
  EXPECT_TRUE(waitUntil(seconds(5), [&] {
    return lab.shell("h1", "cat /proc/[0-9]*/stat 2>/dev/null | grep -c ') Z '").out == "0\n";
  }));
}

TEST(Lab, WrongWordsAreExplained) {
  LAB_OR_SKIP();
  const auto said = [](const Words& words) { return Command(words, ofTool()).finish().err; };
  EXPECT_THAT(said({"up", "--hosts", "x"}), HasSubstr("--hosts x: between 1 and 64"));
  EXPECT_THAT(said({"up", "--frobnicate", "x"}), HasSubstr("no option --frobnicate"));
  EXPECT_THAT(said({"up", "--hostname", "h9=a"}), HasSubstr("no host 'h9' among 3 hosts"));
  EXPECT_THAT(said({"fly"}), HasSubstr("no command 'fly'"));
  EXPECT_THAT(said({"exec", "--name", "nowhere", "h0", "true"}), HasSubstr("is not up"));
  EXPECT_EQ(Command({"down", "--name", "nowhere"}, ofTool()).finish().code, 0);
}

}  // namespace
}  // namespace farandole::test
