#include "launch/remote/same_addresses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace farandole::launch::remote {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(SameAddresses, ContainersOnTwoBridgesAreToldWhatToType) {
  std::vector<HostAddresses> hosts{{"alpha", "boot1 net:[1]", {"172.17.0.2"}, "203.0.113.5", false},
                                   {"beta", "boot2 net:[1]", {"172.17.0.2"}, "", false},
                                   {"gamma", "boot3 net:[1]", {"10.0.0.3"}, "10.0.0.3", false}};
  EXPECT_THAT(sameAddresses(hosts, "30000-30009"),
              AllOf(HasSubstr("hosts alpha, beta have the same address 172.17.0.2"),
                    HasSubstr("--advertise alpha=203.0.113.5,beta=ADDRESS"),
                    HasSubstr("--data-ports 30000-30009")));
  EXPECT_THAT(sameAddresses(hosts, ""), AllOf(HasSubstr("-p 29400-29431:29400-29431"),
                                              HasSubstr("--data-ports 29400-29431")));
  // One that can be reached is enough for two.
  hosts[0].advertised = true;
  EXPECT_EQ(sameAddresses(hosts, ""), "");
}

TEST(SameAddresses, OneNetworkAndFurtherAddressesAreNoTrouble) {
  EXPECT_EQ(sameAddresses({{"alpha", "boot net:[1]", {"10.0.0.1"}, "", false},
                           {"beta", "boot net:[1]", {"10.0.0.1"}, "", false}},
                          ""),
            "");
  EXPECT_EQ(sameAddresses({{"alpha", "boot1", {"172.17.0.2"}, "", false},
                           {"beta", "boot2", {"10.0.0.1", "172.17.0.2"}, "", false}},
                          ""),
            "");
  EXPECT_EQ(
      sameAddresses({{"alpha", "boot1", {}, "", false}, {"beta", "boot2", {}, "", false}}, ""), "");
}

}  // namespace
}  // namespace farandole::launch::remote
