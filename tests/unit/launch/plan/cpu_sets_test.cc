#include "launch/plan/cpu_sets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <set>

namespace farandole::launch::plan {
namespace {

using process::CpuSet;
using process::CpuTopology;

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

CpuSet upTo(int count) {
  CpuSet cpus(static_cast<std::size_t>(count));
  std::iota(cpus.begin(), cpus.end(), 0);
  return cpus;
}

// Packages of cores with two threads each; as on real machines the second threads come last.
CpuTopology machine(int packages, int coresEach) {
  CpuTopology topology;
  const int cores = packages * coresEach;
  for (int cpu = 0; cpu < 2 * cores; ++cpu) {
    const int core = cpu % cores;
    topology.cpus.push_back({cpu, core, core / coresEach, core / coresEach});
  }
  return topology;
}

TEST(CpuSets, Cores) {
  // 2 × 4 cores; CPU 8 is the other thread of core 0.
  const CpuTopology topology = machine(2, 4);
  const auto four = bindingFor(BindTo::kCore, 4, topology, upTo(16));
  EXPECT_THAT(four.sets, ElementsAre(ElementsAre(0, 1, 8, 9), ElementsAre(2, 3, 10, 11),
                                     ElementsAre(4, 5, 12, 13), ElementsAre(6, 7, 14, 15)));
  EXPECT_EQ(four.note, "");
  EXPECT_THAT(threadsPerRank(four, topology, upTo(16), 16), ElementsAre(2, 2, 2, 2));
  // 8 cores do not divide by 3: all ranks get the same.
  EXPECT_THAT(bindingFor(BindTo::kCore, 3, topology, upTo(8)).sets,
              ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3), ElementsAre(4, 5)));
}

TEST(CpuSets, OnlyWhatIsAllowed) {
  const CpuTopology topology = machine(2, 4);
  const CpuSet allowed = {2, 3, 10, 13};
  EXPECT_THAT(bindingFor(BindTo::kCore, 3, topology, allowed).sets,
              ElementsAre(ElementsAre(2, 10), ElementsAre(3), ElementsAre(13)));
  EXPECT_THAT(bindingFor(BindTo::kNuma, 2, topology, allowed).sets,
              ElementsAre(ElementsAre(2, 3, 10), ElementsAre(13)));
}

TEST(CpuSets, FewerCoresThanRanks) {
  const auto binding = bindingFor(BindTo::kCore, 3, machine(1, 2), upTo(4));
  EXPECT_THAT(binding.sets, ElementsAre(IsEmpty(), IsEmpty(), IsEmpty()));
  EXPECT_EQ(binding.note, "not bound to cores: 3 ranks but only 2 cores");
  EXPECT_THAT(threadsPerRank(binding, machine(1, 2), upTo(4), 4), ElementsAre(1, 1, 1));
}

TEST(CpuSets, Numa) {
  const CpuTopology topology = machine(2, 2);
  const CpuSet first = {0, 1, 4, 5};
  const CpuSet second = {2, 3, 6, 7};
  const auto three = bindingFor(BindTo::kNuma, 3, topology, upTo(8));
  EXPECT_THAT(three.sets, ElementsAre(first, second, first));
  EXPECT_THAT(threadsPerRank(three, topology, upTo(8), 8), ElementsAre(1, 2, 1));
  EXPECT_THAT(bindingFor(BindTo::kNuma, 1, topology, upTo(8)).sets, ElementsAre(upTo(8)));
}

TEST(CpuSets, ThreadsOfTheUnbound) {
  const CpuTopology topology = machine(1, 8);
  const auto none = bindingFor(BindTo::kNone, 2, topology, upTo(16));
  EXPECT_THAT(none.sets, ElementsAre(IsEmpty(), IsEmpty()));
  EXPECT_THAT(threadsPerRank(none, topology, upTo(16), 16), ElementsAre(4, 4));
  // A cgroup that gives the time of 3 CPUs.
  EXPECT_THAT(threadsPerRank(none, topology, upTo(16), 3), ElementsAre(1, 1));
  EXPECT_THAT(threadsPerRank(none, topology, upTo(16), 6), ElementsAre(3, 3));
}

TEST(CpuSets, GivenByTheUser) {
  const CpuTopology topology = machine(1, 8);
  auto binding = bindingFromSets({{0, 1, 2, 3, 4, 5}, {6}, {7}}, 2, upTo(8));
  ASSERT_TRUE(binding.ok());
  EXPECT_EQ(binding->sets.size(), 2u);
  EXPECT_THAT(threadsPerRank(*binding, topology, upTo(8), 8), ElementsAre(6, 1));
  EXPECT_THAT(bindingFromSets({{0}}, 2, upTo(8)).status().message(),
              HasSubstr("--cpus has 1 set, but there are 2 ranks"));
  EXPECT_THAT(bindingFromSets({{9}}, 1, upTo(8)).status().message(), HasSubstr("allowed are 0-7"));
  EXPECT_EQ(bindingFromSets({{7, 8}}, 1, upTo(8))->note,
            "of the CPUs 7-8 of local rank 0 only 7 are allowed");
  EXPECT_TRUE(parseBindTo("numa").ok());
  EXPECT_THAT(parseBindTo("socket").status().message(), HasSubstr("core, numa or none"));
}

TEST(CpuSets, CoresAreNeverShared) {
  std::mt19937 random(19);
  for (int round = 0; round < 200; ++round) {
    const CpuTopology topology = machine(1 + static_cast<int>(random() % 3), 4);
    CpuSet allowed;
    for (const process::CpuPlace& place : topology.cpus) {
      if (random() % 3 != 0) allowed.push_back(place.cpu);
    }
    const int ranks = 1 + static_cast<int>(random() % 6);
    const auto binding = bindingFor(BindTo::kCore, ranks, topology, allowed);
    ASSERT_EQ(binding.sets.size(), static_cast<std::size_t>(ranks));
    std::set<int> used;
    for (const CpuSet& set : binding.sets) {
      EXPECT_EQ(process::commonCpus(set, allowed), set);
      EXPECT_EQ(set.empty(), !binding.note.empty());
      std::set<int> own;
      for (int cpu : set) own.insert(topology.at(cpu).core);
      for (int core : own) EXPECT_TRUE(used.insert(core).second);
      EXPECT_EQ(own.size(), process::coresOf(topology, binding.sets.front()).size());
    }
  }
}

}  // namespace
}  // namespace farandole::launch::plan
