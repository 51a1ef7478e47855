// Which CPUs ranks get. The first five are ipexrun's own results.
#include "compat/pinning.h"

#include <gmock/gmock.h>

namespace farandole::compat {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Pinning pin(const UsableCpus& topology, const PinningRequest& request) {
  auto pinning = pinRanks(topology, request);
  EXPECT_TRUE(pinning.ok()) << pinning.status().message();
  return pinning.ok() ? *pinning : Pinning{};
}

TEST(Pinning, PhysicalCoresForWorkers) {
  const Pinning pinning = pin(UsableCpus::uniform(2, 28, 2), {.ranks = 2, .workers = 4});
  EXPECT_EQ(pinning.pinDomain(), "[0xffffff0,0xffffff00000000]");
  EXPECT_EQ(pinning.workerAffinity(), "0,1,2,3,28,29,30,31");
  EXPECT_EQ(pinning.threads(), 24);
  EXPECT_EQ(pinning.cpuSets(), "0-27;28-55");
}

TEST(Pinning, HyperthreadsForWorkers) {
  const Pinning pinning =
      pin(UsableCpus::uniform(2, 28, 2), {.ranks = 2, .workers = 4, .workersOnSiblings = true});
  EXPECT_EQ(pinning.pinDomain(), "[0xfffffff,0xfffffff0000000]");
  EXPECT_EQ(pinning.workerAffinity(), "56,57,58,59,84,85,86,87");
  EXPECT_EQ(pinning.threads(), 28);
  EXPECT_EQ(pinning.cpuSets(), "0-27,56-59;28-55,84-87");
}

TEST(Pinning, SomeNodes) {
  const Pinning pinning =
      pin(UsableCpus::uniform(4, 14, 2), {.ranks = 2, .workers = 2, .nodes = {1, 2}});
  EXPECT_EQ(pinning.pinDomain(), "[0xfff0000,0x3ffc0000000]");
  EXPECT_EQ(pinning.workerAffinity(), "14,15,28,29");
}

TEST(Pinning, SoManyCoresEach) {
  const Pinning pinning = pin(UsableCpus::uniform(2, 28, 2),
                              {.ranks = 2, .coresPerRank = 8, .workers = 4, .bindNode = true});
  EXPECT_EQ(pinning.pinDomain(), "[0xff0,0xff0000]");
  EXPECT_EQ(pinning.workerAffinity(), "0,1,2,3,12,13,14,15");
  EXPECT_EQ(pinning.threads(), 8);
}

TEST(Pinning, EfficientCoresAreLeftOut) {
  // Each node: 28 cores, their second hyperthreads, 4 E-cores.
  UsableCpus topology;
  for (int node = 0; node < 2; ++node) {
    for (int i = 0; i < 60; ++i) {
      const int core = node * 32 + (i < 28 ? i : i < 56 ? i - 28 : i - 28);
      topology.cpus.push_back({node * 60 + i, core, node, i < 28 || i >= 56, i >= 56});
    }
  }
  const Pinning pinning = pin(topology, {.ranks = 2, .workers = 4, .workersOnSiblings = true});
  EXPECT_EQ(pinning.pinDomain(), "[0xfffffff,0xfffffff000000000000000]");
  EXPECT_EQ(pinning.workerAffinity(), "28,29,30,31,88,89,90,91");
  EXPECT_EQ(pin(topology, {.ranks = 2, .useEfficient = true}).threads(), 32);
}

TEST(Pinning, TooFewCoresForWorkersIsANote) {
  const Pinning pinning = pin(UsableCpus::uniform(1, 2), {.ranks = 2, .workers = 4});
  EXPECT_EQ(pinning.cpuSets(), "0;1");
  EXPECT_EQ(pinning.workerAffinity(), "");
  EXPECT_THAT(pinning.notes, ElementsAre(HasSubstr("too few cores (2) to keep 4")));
  const Pinning noSiblings =
      pin(UsableCpus::uniform(1, 8), {.ranks = 2, .workers = 1, .workersOnSiblings = true});
  EXPECT_THAT(noSiblings.notes, ElementsAre(HasSubstr("second hyperthreads")));
  EXPECT_EQ(noSiblings.cpuSets(), "0-3;4-7");
  EXPECT_EQ(noSiblings.workerAffinity(), "0,4");
}

TEST(Pinning, MoreRanksThanCoresArePinnedNowhere) {
  const Pinning pinning = pin(UsableCpus::uniform(1, 2), {.ranks = 3, .workers = 4});
  EXPECT_TRUE(pinning.ranks.empty());
  EXPECT_EQ(pinning.count, 3);
  EXPECT_EQ(pinning.threads(), 1);
}

TEST(Pinning, LessTimeThanCoresPinsNobody) {
  UsableCpus topology = UsableCpus::uniform(1, 8);
  topology.quota = 4;
  const Pinning pinning = pin(topology, {.ranks = 2});
  EXPECT_TRUE(pinning.ranks.empty());
  EXPECT_EQ(pinning.threads(), 2);
  EXPECT_THAT(pinning.notes, ElementsAre(HasSubstr("the time of 4 of 8 cores")));
  EXPECT_EQ(pin(topology, {.ranks = 2, .coresPerRank = 2}).cpuSets(), "0-1;2-3");
}

TEST(Pinning, DivisionOfTheRest) {
  const UsableCpus topology = UsableCpus::uniform(1, 8);
  EXPECT_EQ(pin(topology, {.ranks = 3}).cpuSets(), "0-1;2-3;4-5");
  EXPECT_EQ(pin(topology, {.ranks = 3, .coresPerRank = -1}).cpuSets(), "0-2;3-5;6-7");
  EXPECT_EQ(pin(topology, {.coresPerRank = 3}).cpuSets(), "0-2;3-5");
  EXPECT_EQ(pin(topology, {}).cpuSets(), "0-7");
  EXPECT_EQ(pin(topology, {.ranks = 2, .cpus = {1, 3, 5, 7}}).cpuSets(), "1,3;5,7");
  const UsableCpus nodes = UsableCpus::uniform(2, 5);
  EXPECT_EQ(pin(nodes, {.coresPerRank = 2, .bindNode = true}).cpuSets(), "0-1;2-3;5-6;7-8");
  EXPECT_EQ(pin(nodes, {.ranks = 3, .bindNode = true}).cpuSets(), "0-1;2-3;5-6");
  EXPECT_EQ(pin(UsableCpus::uniform(1, 2, 2), {.ranks = 2, .useLogical = true}).cpuSets(),
            "0,2;1,3");
}

TEST(Pinning, ImpossibleWishesAreErrors) {
  const UsableCpus topology = UsableCpus::uniform(1, 4);
  const auto message = [&](const PinningRequest& request) {
    return pinRanks(topology, request).status().message();
  };
  EXPECT_EQ(message({.ranks = 2, .coresPerRank = 3}),
            "2 times 3 cores were asked for, and there are 4: ask for fewer");
  EXPECT_THAT(message({.coresPerRank = 5}), HasSubstr("1 times 5 cores"));
  EXPECT_THAT(message({.cpus = {9}}), HasSubstr("CPU 9 is not among"));
  EXPECT_THAT(message({.nodes = {1}}), HasSubstr("no NUMA node 1"));
  EXPECT_EQ(pinRanks(UsableCpus{}, {.ranks = 1}).value().count, 1);
}

TEST(Pinning, Lists) {
  EXPECT_THAT(parseNumbers("--x", "3,0-1,1").value(), ElementsAre(0, 1, 3));
  for (const char* bad : {"", "a", "1-", "-1", "3-1", "99999999999", "1,,b"}) {
    EXPECT_FALSE(parseNumbers("--x", bad).ok()) << bad;
  }
}

TEST(UsableCpus, ThisMachineHasCpus) {
  const UsableCpus here = readUsableCpus("/sys/devices/system");
  ASSERT_FALSE(here.cpus.empty());
  EXPECT_GE(here.cores(), 1);
  EXPECT_GE(here.nodes().size(), 1U);
  EXPECT_TRUE(here.cpus[0].physical);
  // Without /sys every CPU is a core of its own.
  const UsableCpus blind = readUsableCpus("/nonexistent");
  EXPECT_EQ(blind.cores(), static_cast<int>(here.cpus.size()));
}

}  // namespace
}  // namespace farandole::compat
