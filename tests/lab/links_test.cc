// What the laboratory does to its hosts' links.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lab/lab.h"

namespace farandole::test {
namespace {

using testing::HasSubstr;
using testing::Not;

// How many pings arrived there, answered or not.
int pingsAt(const Lab& lab, const std::string& host) {
  return std::stoi(lab.run(host, {"awk", "/^Icmp: [0-9]/ { print $10 }", "/proc/net/snmp"}).out);
}

TEST(LabLinks, CutAndHealed) {
  LAB_OR_SKIP();
  const Lab lab;
  lab.cut("h1");
  EXPECT_FALSE(lab.reaches("h0", "h1"));
  EXPECT_TRUE(lab.reaches("h0", "h2"));
  EXPECT_THAT(lab.must("status"), HasSubstr("link cut"));
  lab.heal("h1");
  EXPECT_TRUE(lab.reaches("h0", "h1"));

  lab.must("cut", {"h0", "h1"});
  const int before = pingsAt(lab, "h1");
  const int back = pingsAt(lab, "h0");
  EXPECT_FALSE(lab.reaches("h0", "h1"));
  EXPECT_FALSE(lab.reaches("h1", "h0"));
  EXPECT_EQ(pingsAt(lab, "h1"), before);
  EXPECT_EQ(pingsAt(lab, "h0"), back);
  EXPECT_TRUE(lab.reaches("h2", "h1"));
  lab.must("heal", {"h1", "h0"});
  EXPECT_TRUE(lab.reaches("h0", "h1"));

  // What is asked arrives, the answer does not.
  lab.must("cut", {"--one-way", "h1", "h0"});
  const int healed = pingsAt(lab, "h1");
  EXPECT_FALSE(lab.reaches("h0", "h1"));
  EXPECT_EQ(pingsAt(lab, "h1"), healed + 1);
  lab.must("heal");
  EXPECT_TRUE(lab.reaches("h0", "h1"));
}

TEST(LabLinks, RateAndLoss) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 2, .more = {"--interface", "h1=ens5"}});
  const Words qdisc{"tc", "qdisc", "show", "dev", "ens5"};
  lab.must("rate", {"h1", "1gbit"});
  EXPECT_THAT(lab.run("h1", qdisc).out, HasSubstr("tbf"));
  EXPECT_THAT(lab.run("h1", qdisc).out, HasSubstr("rate 1Gbit"));
  lab.must("rate", {"h1", "100mbit"});
  EXPECT_THAT(lab.run("h1", qdisc).out, HasSubstr("rate 100Mbit"));
  lab.must("rate", {"h1", "off"});
  EXPECT_THAT(lab.run("h1", qdisc).out, Not(HasSubstr("tbf")));
  EXPECT_EQ(lab.tool("rate", {"h1", "fast"}).code, 1);

  lab.must("loss", {"h1", "100"});
  EXPECT_FALSE(lab.reaches("h0", "h1"));
  lab.must("loss", {"h1", "off"});
  EXPECT_TRUE(lab.reaches("h0", "h1"));
}

TEST(LabLinks, DelayedBothWays) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 2});
  lab.delay("h1", 20);
  const std::string slow = lab.run("h0", {"ping", "-c1", "-W2", "h1"}).out;
  const auto at = slow.find("time=");
  ASSERT_NE(at, std::string::npos) << slow;
  EXPECT_GE(std::stod(slow.substr(at + 5)), 40.0);
  // Larger than a frame, both ways, whole.
  const Outcome large = lab.ssh("h0", {"h1", "head -c 3000000 /dev/zero | tee /dev/stderr"});
  EXPECT_EQ(large.code, 0);
  EXPECT_EQ(large.out.size(), 3'000'000U);
  EXPECT_EQ(large.err.size(), 3'000'000U);
  lab.must("cut", {"h0", "h1"});
  EXPECT_FALSE(lab.reaches("h0", "h1"));
  lab.must("heal");
  EXPECT_TRUE(lab.reaches("h0", "h1"));
  lab.delay("h1", 0);
  EXPECT_TRUE(lab.reaches("h0", "h1"));
  EXPECT_THAT(lab.must("status"), Not(HasSubstr("delay")));
}

TEST(LabLinks, PortsAndSshd) {
  LAB_OR_SKIP();
  const Lab lab({.hosts = 2});
  lab.sshd("h1", false);
  EXPECT_THAT(lab.ssh("h0", {"h1", "true"}).err, HasSubstr("Connection refused"));
  lab.sshd("h1", true);
  EXPECT_EQ(lab.ssh("h0", {"h1", "true"}).code, 0);
  lab.must("port", {"h1", "12345", "refuse"});
  EXPECT_THAT(lab.ssh("h0", {"h1", "true"}).err, HasSubstr("Connection refused"));
  lab.must("port", {"h1", "12345", "drop"});
  EXPECT_THAT(lab.ssh("h0", {"h1", "true"}).err, HasSubstr("timed out"));
  lab.must("port", {"h1", "12345", "open"});
  EXPECT_EQ(lab.ssh("h0", {"h1", "true"}).code, 0);
}

TEST(LabLinks, BehindTheGateway) {
  LAB_OR_SKIP();
  const Lab lab({.more = {"--nat", "h2:30000-30001"}});
  EXPECT_EQ(lab.ssh("h0", {"-p", "22002", "10.77.0.254", "hostname"}).out, "h2\n");
  EXPECT_EQ(lab.ssh("h0", {"h2", "hostname"}).out, "h2\n");
  // As if h0 were told the way: still nothing but the mapped ports.
  EXPECT_EQ(lab.run("h0", {"ip", "route", "add", "192.168.102.0/24", "via", "10.77.0.254"}).code,
            0);
  EXPECT_FALSE(lab.reaches("h0", "192.168.102.2"));
  EXPECT_THAT(lab.ssh("h0", {"-p", "12345", "192.168.102.2", "true"}).err, HasSubstr("timed out"));
  // Out it can.
  EXPECT_EQ(lab.ssh("h2", {"h0", "echo ${SSH_CONNECTION%% *}"}).out, "10.77.0.254\n");

  const auto server = lab.start("h2", {"/usr/sbin/sshd", "-D", "-e", "-f", "/run/lab/sshd_config",
                                       "-o", "PidFile=none", "-p", "30001"});
  ASSERT_TRUE(server->waitForOutput("listening on 0.0.0.0 port 30001"));
  const Outcome mapped =
      lab.ssh("h1", {"-p", "30001", "-o", "HostKeyAlias=[gw]:22002", "gw", "hostname"});
  EXPECT_EQ(mapped.out, "h2\n") << mapped.err;
}

}  // namespace
}  // namespace farandole::test
