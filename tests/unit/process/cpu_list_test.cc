#include "process/cpu_list.h"

#include <gmock/gmock.h>

#include <random>
#include <set>

namespace farandole::process {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

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

}  // namespace
}  // namespace farandole::process
