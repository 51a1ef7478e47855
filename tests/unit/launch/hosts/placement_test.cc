#include "launch/hosts/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <random>

namespace farandole::launch::hosts {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<PlacedRank> placed(const std::vector<int>& slots, std::optional<int> np, MapBy mapBy) {
  auto ranks = placeRanks(slots, np, mapBy);
  EXPECT_TRUE(ranks.ok()) << ranks.status().message();
  return ranks.ok() ? *ranks : std::vector<PlacedRank>{};
}

// host, rank, localRank, localSize, crossRank, crossSize
TEST(Placement, BySlotFillsHostAfterHost) {
  EXPECT_THAT(placed({2, 1}, std::nullopt, MapBy::kSlot),
              ElementsAre(PlacedRank{0, 0, 0, 2, 0, 2}, PlacedRank{0, 1, 1, 2, 0, 1},
                          PlacedRank{1, 2, 0, 1, 1, 2}));
}

TEST(Placement, ByNodeDealsOut) {
  EXPECT_THAT(placed({2, 1, 2}, std::nullopt, MapBy::kNode),
              ElementsAre(PlacedRank{0, 0, 0, 2, 0, 3}, PlacedRank{1, 1, 0, 1, 1, 3},
                          PlacedRank{2, 2, 0, 2, 2, 3}, PlacedRank{0, 3, 1, 2, 0, 2},
                          PlacedRank{2, 4, 1, 2, 1, 2}));
}

TEST(Placement, FewerRanksThanSlots) {
  EXPECT_THAT(placed({2, 2}, 3, MapBy::kSlot),
              ElementsAre(PlacedRank{0, 0, 0, 2, 0, 2}, PlacedRank{0, 1, 1, 2, 0, 1},
                          PlacedRank{1, 2, 0, 1, 1, 2}));
  EXPECT_THAT(placed({4, 4}, 2, MapBy::kNode),
              ElementsAre(PlacedRank{0, 0, 0, 1, 0, 2}, PlacedRank{1, 1, 0, 1, 1, 2}));
  EXPECT_THAT(placed({4, 4}, 1, MapBy::kSlot), ElementsAre(PlacedRank{0, 0, 0, 1, 0, 1}));
}

TEST(Placement, ErrorsSayWhatThereIsAndWhatToType) {
  const std::vector<HostSpec> hosts = {{.name = "a", .slots = 2}, {.name = "b", .slots = 1}};
  EXPECT_EQ(placeRanks(hosts, 6, MapBy::kSlot).status().message(),
            "6 ranks wanted, but there are 3 slots on a:2,b:1; give more slots, for example "
            "-H a:4,b:2, or -n 3");
  EXPECT_THAT(placeRanks(hosts, 100000, MapBy::kSlot).status().message(),
              HasSubstr("-n 3 or name more hosts"));
  EXPECT_EQ(placeRanks(std::vector<int>(30, 1), 31, MapBy::kSlot).status().message(),
            "31 ranks wanted, but there are 30 slots on host1:1,host2:1,host3:1,host4:1,host5:1,"
            "host6:1,host7:1,host8:1,… (30 hosts); give more slots to each host, or -n 30");
  EXPECT_THAT(placeRanks(hosts, 0, MapBy::kSlot).status().message(), HasSubstr("at least 1 rank"));
  EXPECT_FALSE(placeRanks(hosts, -1, MapBy::kSlot).ok());
  EXPECT_THAT(placeRanks(std::vector<HostSpec>{}, 1, MapBy::kSlot).status().message(),
              HasSubstr("no hosts"));
  EXPECT_THAT(placeRanks({HostSpec{.name = "z"}}, 1, MapBy::kSlot).status().message(),
              HasSubstr("z:1"));
  EXPECT_FALSE(placeRanks(std::vector<int>(65536, 1024), std::nullopt, MapBy::kSlot).ok());
}

TEST(Placement, HoldsForAnySlots) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    std::vector<int> slots(1 + random() % 8);
    for (int& count : slots) count = 1 + static_cast<int>(random() % 6);
    const int total = std::accumulate(slots.begin(), slots.end(), 0);
    const int np = 1 + static_cast<int>(random() % static_cast<unsigned>(total));
    for (MapBy mapBy : {MapBy::kSlot, MapBy::kNode}) {
      const auto ranks = placed(slots, np, mapBy);
      ASSERT_EQ(ranks.size(), static_cast<std::size_t>(np));
      std::map<int, int> onHost;
      std::map<int, std::map<int, int>> hostsWithLocal;  // local rank -> host -> cross rank
      for (int i = 0; i < np; ++i) {
        const PlacedRank& one = ranks[static_cast<std::size_t>(i)];
        EXPECT_EQ(one.rank, i);
        EXPECT_EQ(one.localRank, onHost[one.host]++);
        hostsWithLocal[one.localRank][one.host] = one.crossRank;
      }
      for (const PlacedRank& one : ranks) {
        EXPECT_EQ(one.localSize, onHost[one.host]);
        EXPECT_EQ(one.crossSize, static_cast<int>(hostsWithLocal[one.localRank].size()));
      }
      for (const auto& [host, count] : onHost) {
        EXPECT_LE(count, slots[static_cast<std::size_t>(host)]);
      }
      for (const auto& [local, hosts] : hostsWithLocal) {
        int next = 0;
        for (const auto& [host, cross] : hosts) EXPECT_EQ(cross, next++);
      }
    }
  }
}

}  // namespace
}  // namespace farandole::launch::hosts
