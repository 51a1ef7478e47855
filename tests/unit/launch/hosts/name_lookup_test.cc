#include "launch/hosts/name_lookup.h"

#include <gtest/gtest.h>

#include "launch/hosts/locality.h"

namespace farandole::launch::hosts {
namespace {

TEST(NameLookup, NumbersAskNobody) {
  // A deadline that has passed leaves no time for the resolver.
  const Deadline passed = Deadline::after(std::chrono::seconds(-1));
  const auto four = lookUpName("203.0.113.5", 80, passed);
  ASSERT_TRUE(four && four->addresses.size() == 1);
  EXPECT_EQ(four->addresses[0].text, "203.0.113.5");
  EXPECT_EQ(four->addresses[0].family(), AF_INET);
  const auto six = lookUpName("fd00::11", 80, passed);
  ASSERT_TRUE(six && six->addresses.size() == 1);
  EXPECT_EQ(six->addresses[0].text, "fd00::11");
  EXPECT_EQ(numericAddress("203.0.113.5"), "203.0.113.5");
}

TEST(NameLookup, NamesHaveAddresses) {
  const auto found = lookUpName("localhost", 0, Deadline::after(std::chrono::seconds(10)));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->error, 0);
  EXPECT_FALSE(found->addresses.empty());
  EXPECT_EQ(numericAddress(""), "");
}

TEST(Locality, EachOfSeveralHosts) {
  EXPECT_EQ(whichAreThisMachine({{"203.0.113.5"}, {"localhost"}, {"127.0.0.1"}, {"203.0.113.6"}}),
            (std::vector<bool>{false, true, true, false}));
  HostSpec withPort{"localhost"};
  withPort.port = 2222;
  HostSpec withUser{"127.0.0.1"};
  withUser.user = "somebody-else";
  EXPECT_EQ(whichAreThisMachine({withPort, withUser}), (std::vector<bool>{false, false}));
  EXPECT_TRUE(whichAreThisMachine({}).empty());
}

}  // namespace
}  // namespace farandole::launch::hosts
