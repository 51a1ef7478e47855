#include "launch/plan/cpu_sets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

#include "process/cpus.h"
#include "unit/launch/hosts/temp_folder.h"

namespace farandole {
namespace {

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

TEST(CpuList, ReadsAndWrites) {
  EXPECT_THAT(parseCpuList("0-3,8").value(), ElementsAre(0, 1, 2, 3, 8));
  EXPECT_THAT(parseCpuList(" 5 , 1-2,2\n").value(), ElementsAre(1, 2, 5));
  EXPECT_EQ(formatCpuList({0, 1, 2, 3, 8}), "0-3,8");
  EXPECT_EQ(formatCpuList({}), "");
  for (const char* bad : {"", "a", "3-1", "-1", "1-", "1,,2", "0-99999", "16384", "1;2", "0x1"}) {
    EXPECT_FALSE(parseCpuList(bad).ok()) << bad;
  }
  EXPECT_THAT(parseCpuList("0-3,x").status().message(), HasSubstr("'x' is not a CPU"));
}

TEST(CpuList, RandomSetsSurvive) {
  std::mt19937 random(17);
  for (int round = 0; round < 200; ++round) {
    std::set<int> cpus;
    for (int i = 0; i < 20; ++i) cpus.insert(static_cast<int>(random() % 40));
    const CpuSet sorted(cpus.begin(), cpus.end());
    EXPECT_EQ(parseCpuList(formatCpuList(sorted)).value(), sorted);
  }
}

TEST(CpuList, SetsOfRanks) {
  EXPECT_THAT(parseCpuSets("0-1;4,6").value(), ElementsAre(ElementsAre(0, 1), ElementsAre(4, 6)));
  EXPECT_THAT(parseCpuSets("0-3;;4").status().message(), HasSubstr("local rank 1 is empty"));
  EXPECT_FALSE(parseCpuSets("").ok());
  EXPECT_FALSE(parseCpuSets("0-3;").ok());
  EXPECT_THAT(parseCpuSets("0-3;b").status().message(), HasSubstr("--cpus: in the list"));
}

TEST(CpuTopology, ReadsTheKernelsTree) {
  TempFolder tree;
  for (int cpu = 0; cpu < 4; ++cpu) {
    const std::string folder = "cpu/cpu" + std::to_string(cpu) + "/topology/";
    tree.write(folder + "physical_package_id", std::to_string(cpu % 2) + "\n");
    tree.write(folder + "core_id", "0\n");
    tree.write(folder + "thread_siblings_list", cpu % 2 == 0 ? "0,2\n" : "1,3\n");
  }
  tree.write("cpu/cpufreq/x", "");
  tree.write("cpu/online", "0-3\n");
  tree.write("node/node0/cpulist", "0,2\n");
  tree.write("node/node1/cpulist", "1,3\n");
  tree.write("node/node2/cpulist", "\n");
  EXPECT_THAT(readCpuTopology(tree.path()).cpus,
              ElementsAre(CpuPlace{0, 0, 0, 0}, CpuPlace{1, 1, 1, 1}, CpuPlace{2, 0, 0, 0},
                          CpuPlace{3, 1, 1, 1}));
}

TEST(CpuTopology, LivesWithoutMuchOfIt) {
  TempFolder tree;
  tree.write("cpu/cpu0/topology/core_id", "5\n");
  tree.write("cpu/cpu1/topology/core_id", "5\n");
  tree.write("cpu/cpu2/topology/core_id", "-1\n");
  tree.write("cpu/cpu3/topology/thread_siblings_list", "nonsense\n");
  EXPECT_THAT(readCpuTopology(tree.path()).cpus,
              ElementsAre(CpuPlace{0, 0, 0, 0}, CpuPlace{1, 0, 0, 0}, CpuPlace{2, 2, 0, 0},
                          CpuPlace{3, 3, 0, 0}));
  EXPECT_THAT(readCpuTopology(tree.path() + "/none").cpus, IsEmpty());
  EXPECT_EQ(CpuTopology{}.at(7), (CpuPlace{7, 7, 0, 0}));
}

TEST(CpuTopology, ThisMachine) {
  const CpuSet allowed = affinityCpuSet();
  ASSERT_FALSE(allowed.empty());
  EXPECT_TRUE(std::is_sorted(allowed.begin(), allowed.end()));
  EXPECT_GE(allowedCpus(), 1);
  EXPECT_LE(allowedCpus(), static_cast<int>(allowed.size()));
  const auto cores = coresOf(readCpuTopology(), allowed);
  EXPECT_GE(cores.size(), 1u);
  EXPECT_LE(cores.size(), allowed.size());
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
    for (const CpuPlace& place : topology.cpus) {
      if (random() % 3 != 0) allowed.push_back(place.cpu);
    }
    const int ranks = 1 + static_cast<int>(random() % 6);
    const auto binding = bindingFor(BindTo::kCore, ranks, topology, allowed);
    ASSERT_EQ(binding.sets.size(), static_cast<std::size_t>(ranks));
    std::set<int> used;
    for (const CpuSet& set : binding.sets) {
      EXPECT_EQ(commonCpus(set, allowed), set);
      EXPECT_EQ(set.empty(), !binding.note.empty());
      std::set<int> own;
      for (int cpu : set) own.insert(topology.at(cpu).core);
      for (int core : own) EXPECT_TRUE(used.insert(core).second);
      EXPECT_EQ(own.size(), coresOf(topology, binding.sets.front()).size());
    }
  }
}

}  // namespace
}  // namespace farandole
