#include "process/cpu_topology.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "process/cpus.h"
#include "unit/launch/hosts/temp_folder.h"

namespace farandole::process {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(CpuTopology, ReadsTheKernelsTree) {
  launch::hosts::TempFolder tree;
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
  tree.write("cpu/cpu1/cpufreq/cpuinfo_max_freq", "3200000\n");
  EXPECT_THAT(readCpuTopology(tree.path()).cpus,
              ElementsAre(CpuPlace{0, 0, 0, 0}, CpuPlace{1, 1, 1, 1, 3200000}, CpuPlace{2, 0, 0, 0},
                          CpuPlace{3, 1, 1, 1}));
}

TEST(CpuTopology, LivesWithoutMuchOfIt) {
  launch::hosts::TempFolder tree;
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

}  // namespace
}  // namespace farandole::process
