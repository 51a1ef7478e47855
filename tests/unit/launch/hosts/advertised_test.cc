#include "launch/hosts/advertised.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace farandole::launch::hosts {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
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

}  // namespace
}  // namespace farandole::launch::hosts
