// Ranks of a benchmark on several machines.
#include "bench/hosted_ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace farandole::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(HostedRanks, NeighboursDoNotShareAProcessor) {
  auto hosts = launch::hosts::parseHosts("alpha:2,beta:3");
  ASSERT_TRUE(hosts.ok());
  EXPECT_THAT(pinsOf(*hosts, false, {4, 6}), ElementsAre(4, 6, 6, 4, 6));
  // alpha, beta, alpha, beta, beta
  EXPECT_THAT(pinsOf(*hosts, true, {4, 6}), ElementsAre(4, 6, 6, 4, 6));
  EXPECT_THAT(pinsOf(*hosts, true, {}), IsEmpty());
  auto singles = launch::hosts::parseHosts("alpha:1,beta:1");
  ASSERT_TRUE(singles.ok());
  EXPECT_THAT(pinsOf(*singles, false, {4, 6}), ElementsAre(4, 6));
}

}  // namespace
}  // namespace farandole::bench
