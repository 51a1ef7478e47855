#include "init/cluster_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace farandole::init {
namespace {

using testing::HasSubstr;

std::string mistake(const std::string& workers) {
  return parseWorkers(workers, 12345).status().message();
}

TEST(InitWorkers, EveryFormIsUnderstood) {
  auto workers = parseWorkers("a:2@10.0.0.6:2222,b,c@[fe80::1]:99,d:3@host.example,e@[::1]", 12345);
  ASSERT_TRUE(workers.ok()) << workers.status().message();
  const struct {
    const char* name;
    const char* address;
    int slots;
    int port;
  } kExpected[] = {{"a", "10.0.0.6", 2, 2222},
                   {"b", "b", 1, 12345},
                   {"c", "fe80::1", 1, 99},
                   {"d", "host.example", 3, 12345},
                   {"e", "::1", 1, 12345}};
  ASSERT_EQ(workers->size(), std::size(kExpected));
  for (std::size_t i = 0; i < std::size(kExpected); ++i) {
    EXPECT_EQ((*workers)[i].name, kExpected[i].name);
    EXPECT_EQ((*workers)[i].address, kExpected[i].address);
    EXPECT_EQ((*workers)[i].slots, kExpected[i].slots);
    EXPECT_EQ((*workers)[i].port, kExpected[i].port);
  }
}

TEST(InitWorkers, MistakesAreNamed) {
  EXPECT_THAT(mistake("-x"), HasSubstr("begins with '-'"));
  EXPECT_THAT(mistake("a@-oProxyCommand=x"), HasSubstr("begins with '-'"));
  EXPECT_THAT(mistake("a,,b"), HasSubstr("empty name"));
  EXPECT_THAT(mistake("a,b,A"), HasSubstr("two workers are called 'A'"));
  EXPECT_THAT(mistake("a@x,b@x"), HasSubstr("another port"));
  EXPECT_THAT(mistake("a:0"), HasSubstr("1 to 4096"));
  EXPECT_THAT(mistake("a:"), HasSubstr("1 to 4096"));
  EXPECT_THAT(mistake("a:99999999999999999999"), HasSubstr("1 to 4096"));
  EXPECT_THAT(mistake("a@x:0"), HasSubstr("1 to 65535"));
  EXPECT_THAT(mistake("a@x:65536"), HasSubstr("1 to 65535"));
  EXPECT_THAT(mistake("a@x:"), HasSubstr("no port"));
  EXPECT_THAT(mistake("a@fe80::1"), HasSubstr("a@[fe80::1]"));
  EXPECT_THAT(mistake("a@[::1"), HasSubstr("']' is missing"));
  EXPECT_THAT(mistake("a@[::1]x"), HasSubstr("should be :PORT"));
  EXPECT_THAT(mistake("a@[::g]"), HasSubstr("no IPv6 address"));
  EXPECT_THAT(mistake("a@"), HasSubstr("is empty"));
  EXPECT_THAT(mistake("a$(id)"), HasSubstr("other signs"));
  EXPECT_THAT(mistake("../a"), HasSubstr("other signs"));
  EXPECT_THAT(mistake("launcher"), HasSubstr("cannot be called"));
}

TEST(InitWorkers, OneAddressMayHaveSeveralPorts) {
  EXPECT_TRUE(parseWorkers("a@h:1,b@h:2", 12345).ok());
}

TEST(InitChecks, WhatWouldBreakAScriptIsRefused) {
  EXPECT_TRUE(checkImage("registry.example:5000/a/b@sha256:00ff").ok());
  EXPECT_FALSE(checkImage("-v").ok());
  EXPECT_FALSE(checkImage("a b").ok());
  EXPECT_FALSE(checkUser("a;b").ok());
  EXPECT_FALSE(checkUser("-a").ok());
  EXPECT_FALSE(checkInterface("eth0 lo").ok());
  EXPECT_TRUE(checkInterface("eth0.5").ok());
  EXPECT_TRUE(checkShmSize("50g").ok());
  EXPECT_FALSE(checkShmSize("g").ok());
  EXPECT_FALSE(checkShmSize("8gb").ok());
  EXPECT_FALSE(checkShmSize("-1g").ok());
  EXPECT_TRUE(checkPath("x", "/a b/%c").ok());
  EXPECT_FALSE(checkPath("x", "a").ok());
  for (const char* path : {"/a\nb", "/a\"b", "/a'b", "/a$b", "/a,b", "/a:b", "/a\\b"}) {
    EXPECT_FALSE(checkPath("x", path).ok()) << path;
  }
}

TEST(InitLauncher, HasAnAddressAndRanks) {
  ClusterSpec spec;
  ASSERT_TRUE(parseLauncher("node0:4", spec).ok());
  EXPECT_EQ(spec.launcher, "node0");
  EXPECT_EQ(spec.launcherSlots, 4);
  EXPECT_FALSE(parseLauncher("node0:x", spec).ok());
  EXPECT_FALSE(parseLauncher("-node", spec).ok());
}

}  // namespace
}  // namespace farandole::init
