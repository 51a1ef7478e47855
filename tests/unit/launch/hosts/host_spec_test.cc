#include "launch/hosts/host_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

namespace farandole::launch::hosts {
namespace host_spec_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

std::vector<HostSpec> parsed(std::string_view list) {
  auto hosts = parseHosts(list);
  EXPECT_TRUE(hosts.ok()) << list << ": " << hosts.status().message();
  return hosts.ok() ? *hosts : std::vector<HostSpec>{};
}

std::string errorOf(std::string_view list) {
  auto hosts = parseHosts(list);
  EXPECT_FALSE(hosts.ok()) << list;
  return hosts.status().message();
}

HostSpec host(std::string name, int slots = 0, int port = 0, std::string user = {}) {
  return {std::move(name), std::move(user), port, slots};
}

TEST(HostSpec, NamesSlotsPortsUsers) {
  EXPECT_THAT(parsed("a:2,b:3"), ElementsAre(host("a", 2), host("b", 3)));
  EXPECT_THAT(parsed("a,b"), ElementsAre(host("a"), host("b")));
  EXPECT_THAT(parsed("dev@w1:12345:2"), ElementsAre(host("w1", 2, 12345, "dev")));
  EXPECT_THAT(parsed(" a:1 ,\tb "), ElementsAre(host("a", 1), host("b")));
  EXPECT_THAT(parsed("localhost:2,123.123.123.123:2"),
              ElementsAre(host("localhost", 2), host("123.123.123.123", 2)));
  EXPECT_THAT(parsed("a:1,u@a:1,a:22:1"),
              ElementsAre(host("a", 1), host("a", 1, 0, "u"), host("a", 1, 22)));
}

TEST(HostSpec, Ipv6) {
  EXPECT_THAT(parsed("::1"), ElementsAre(host("::1")));
  EXPECT_THAT(parsed("fe80::1%eth0"), ElementsAre(host("fe80::1%eth0")));
  EXPECT_THAT(parsed("[fe80::1]:2"), ElementsAre(host("fe80::1", 2)));
  EXPECT_THAT(parsed("u@[::1]:12345:2,[::2]"),
              ElementsAre(host("::1", 2, 12345, "u"), host("::2")));
  EXPECT_THAT(parsed("fe80::1:2"), ElementsAre(host("fe80::1:2")));
  EXPECT_THAT(errorOf("[fe80::1"), HasSubstr("bracket"));
  EXPECT_THAT(errorOf("[fe80::g]:2"), HasSubstr("[fe80::1]:2"));
  EXPECT_THAT(errorOf("fe80::1%:2"), HasSubstr("fe80::1%:2"));
  EXPECT_THAT(errorOf("[::1]2"), HasSubstr("too much after its name"));
}

TEST(HostSpec, Ranges) {
  EXPECT_THAT(parsed("node[01-03]"), ElementsAre(host("node01"), host("node02"), host("node03")));
  EXPECT_THAT(parsed("node[1,3,5-6]-ib:2,x"),
              ElementsAre(host("node1-ib", 2), host("node3-ib", 2), host("node5-ib", 2),
                          host("node6-ib", 2), host("x")));
  EXPECT_THAT(parsed("n[9-11]"), ElementsAre(host("n9"), host("n10"), host("n11")));
  EXPECT_THAT(parsed("n[098-101]"),
              ElementsAre(host("n098"), host("n099"), host("n100"), host("n101")));
  EXPECT_THAT(parsed("r[0-1]n[1-2]"),
              ElementsAre(host("r0n1"), host("r0n2"), host("r1n1"), host("r1n2")));
  EXPECT_THAT(parsed("n[1-65536]"), SizeIs(65536));
  EXPECT_THAT(errorOf("n[0-65536]"), HasSubstr("more than 65536 hosts"));
  EXPECT_THAT(errorOf("n[0-999]x[0-999]"), HasSubstr("more than 65536 hosts"));
  EXPECT_THAT(errorOf("a[1-40000],b[1-40000]"), HasSubstr("more than 65536 hosts"));
  EXPECT_THAT(errorOf("n[3-1]"), HasSubstr("runs backwards"));
  EXPECT_THAT(errorOf("n[001-10]"), HasSubstr("padded differently"));
  EXPECT_THAT(errorOf("n[1-010]"), HasSubstr("padded differently"));
  for (const char* bad : {"n[", "n]", "n[1", "n[[1]]", "n[]", "n[1-]", "n[-1]", "n[a]", "n[1,,2]",
                          "n[1-2-3]", "n[1]]", "n[99999999999999999999]"}) {
    EXPECT_THAT(errorOf(bad), HasSubstr("bad range")) << bad;
  }
}

TEST(HostSpec, ErrorsSayWhatToType) {
  EXPECT_THAT(errorOf(""), HasSubstr("-H a:2,b:2"));
  EXPECT_THAT(errorOf("  "), HasSubstr("is empty"));
  EXPECT_THAT(errorOf("a:1,,b"), HasSubstr("item 2 of the host list 'a:1,,b' is empty"));
  EXPECT_THAT(errorOf("a,"), HasSubstr("item 2"));
  EXPECT_THAT(errorOf("a:0"), HasSubstr("'a:0': 0 slots"));
  EXPECT_THAT(errorOf("a:-1"), HasSubstr("'-1' is not a number of slots"));
  EXPECT_THAT(errorOf("a:"), HasSubstr("not a number of slots"));
  EXPECT_THAT(errorOf("a:12345"), HasSubstr("host:port:slots"));
  EXPECT_THAT(errorOf("a:0:1"), HasSubstr("not a port from 1 to 65535"));
  EXPECT_THAT(errorOf("a:65536:1"), HasSubstr("'65536' is not a port"));
  EXPECT_THAT(errorOf("a:1:2:3"), HasSubstr("too much after its name"));
  EXPECT_THAT(errorOf("a b"), HasSubstr("separate hosts with commas"));
  EXPECT_THAT(errorOf("@a"), HasSubstr("bad user name"));
  EXPECT_THAT(errorOf("u@"), HasSubstr("bad host name"));
  EXPECT_THAT(errorOf(":2"), HasSubstr("bad host name"));
}

// What would be an option of ssh, or mean something to a remote shell, never gets through.
TEST(HostSpec, NothingDangerousIsAHost) {
  for (const char* bad : {"-oProxyCommand=x", "-p", "-v:2", "u@-a", "-l@a", "a;b", "$(id)", "a`b",
                          "a/b", "a\nb", "a'b", "a\"b", "*", "a|b", "ä", "a\\b", "fe80::1%-x"}) {
    EXPECT_FALSE(parseHosts(bad).ok()) << bad;
  }
  EXPECT_FALSE(parseHosts(std::string_view("::1\0;id", 7)).ok());
  EXPECT_FALSE(parseHosts(std::string_view("a\0b", 3)).ok());
  EXPECT_THAT(errorOf("-oProxyCommand=x"), HasSubstr("begins with '-'"));
  EXPECT_EQ(errorOf("a\x1b[2Jb[").find('\x1b'), std::string::npos);
}

TEST(HostSpec, Repetition) {
  EXPECT_THAT(parsed("a,b,a,a"), ElementsAre(host("a", 3), host("b")));
  EXPECT_EQ(errorOf("a:2,b:1,a:2"), "host 'a' is listed twice; write a:4");
  EXPECT_EQ(errorOf("a,a:2"), "host 'a' is listed twice; write a:3");
  EXPECT_EQ(errorOf("a:2,a"), "host 'a' is listed twice; write a:3");
  EXPECT_EQ(errorOf("u@a:22:1,u@a:22:1"), "host 'a' is listed twice; write u@a:22:2");
  EXPECT_EQ(errorOf("n[1-2]:1,n2:1"), "host 'n2' is listed twice; write n2:2");
  std::string many = "a";
  for (int i = 0; i < kMostSlots; ++i) many += ",a";
  EXPECT_THAT(errorOf(many), HasSubstr("more than 1024 slots"));
}

TEST(HostSpec, PrintedListsAreReadAsTheSame) {
  std::mt19937 random(7);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  const std::string first = "abcXYZ019_.";
  const std::string rest = first + "-";
  for (int round = 0; round < 300; ++round) {
    std::vector<HostSpec> hosts;
    std::set<std::string> names;
    for (int count = 1 + below(6); count > 0; --count) {
      HostSpec one;
      if (below(4) == 0) {
        one.name = "fe80::" + std::to_string(1 + below(9999)) + (below(2) == 0 ? "%eth0" : "");
      } else {
        one.name = first[random() % first.size()];
        for (int i = below(12); i > 0; --i) one.name += rest[random() % rest.size()];
      }
      if (!names.insert(one.name).second) continue;
      if (below(3) == 0) one.user = "u" + std::to_string(below(9));
      if (below(2) == 0) one.slots = 1 + below(kMostSlots);
      if (one.slots > 0 && below(2) == 0) one.port = 1 + below(65535);
      hosts.push_back(one);
    }
    EXPECT_EQ(parsed(formatHosts(hosts)), hosts) << formatHosts(hosts);
  }
}

TEST(HostSpec, RandomTextNeverGivesABadHost) {
  std::mt19937 random(11);
  const std::string alphabet = std::string("a1-0:,[]@.% \t\r\n\"$;_fF\xff") + '\0';
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    for (auto i = random() % 16; i > 0; --i) text += alphabet[random() % alphabet.size()];
    auto hosts = parseHosts(text);
    if (!hosts.ok()) {
      EXPECT_EQ(hosts.status().message().find('\n'), std::string::npos);
      continue;
    }
    EXPECT_FALSE(hosts->empty());
    for (const HostSpec& one : *hosts) {
      EXPECT_TRUE(checkHostName(one.name).ok()) << text;
      EXPECT_TRUE(one.user.empty() || one.user.front() != '-') << text;
      EXPECT_TRUE(one.slots >= 0 && one.slots <= kMostSlots && one.port >= 0 && one.port < 65536);
    }
    EXPECT_EQ(parsed(formatHosts(*hosts)), *hosts) << text;
  }
}

using testing::IsEmpty;
using testing::Pair;

TEST(Advertised, HostsAndTheirAddresses) {
  auto pairs = parseAdvertised("alpha=203.0.113.5,beta=2001:db8::1,alpha=198.51.100.7",
                               {"alpha", "beta", "gamma"});
  ASSERT_TRUE(pairs.ok());
  EXPECT_THAT(*pairs, ElementsAre(Pair("alpha", "203.0.113.5"), Pair("beta", "2001:db8::1"),
                                  Pair("alpha", "198.51.100.7")));
  auto none = parseAdvertised("", {"alpha"});
  ASSERT_TRUE(none.ok());
  EXPECT_THAT(*none, IsEmpty());
}

TEST(Advertised, WhatIsNoHostOfTheJobIsRefused) {
  for (const char* wrong : {"gamma=203.0.113.5", "alpha", "alpha=", "=203.0.113.5", "alpha:1"}) {
    const auto pairs = parseAdvertised(wrong, {"alpha", "beta"});
    ASSERT_FALSE(pairs.ok()) << wrong;
    EXPECT_THAT(pairs.status().message(), HasSubstr("expected HOST=ADDRESS"));
  }
}

}  // namespace host_spec_test
}  // namespace farandole::launch::hosts
