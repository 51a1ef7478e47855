// Ranks that srun has started without any MPI.
#include "runtime/slurm_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/identity.h"

namespace farandole::runtime {
namespace {

using ::testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

std::function<const char*(const char*)> environment(const Variables& variables) {
  return [&variables](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

Variables stepOfThree() {
  return {{"SLURM_JOB_ID", "4711"},
          {"SLURM_STEP_ID", "2"},
          {"SLURM_STEP_NUM_TASKS", "3"},
          {"SLURM_STEP_TASKS_PER_NODE", "2,1"},
          {"SLURM_STEP_NODELIST", "node[07-08]"},
          {"SLURM_PROCID", "2"},
          {"SLURM_LOCALID", "0"},
          {"SLURM_NODEID", "1"},
          {"FARANDOLE_SECRET", std::string(64, 'a')}};
}

TEST(SlurmStep, SaysWhoARankIs) {
  Variables variables = stepOfThree();
  auto identity = identify(environment(variables));
  ASSERT_TRUE(identity.ok()) << identity.status().message();
  EXPECT_EQ(identity->config.rank, 2);
  EXPECT_EQ(identity->config.size, 3);
  EXPECT_EQ(identity->config.localRank, 0);
  EXPECT_EQ(identity->config.localSize, 1);
  EXPECT_EQ(identity->config.machine, 1);
  ASSERT_TRUE(identity->store.has_value());
  EXPECT_EQ(identity->store->address, "node07");
  EXPECT_THAT(identity->config.job, HasSubstr("slurm-4711.2"));
}

TEST(SlurmStep, OthersHaveTheLastWord) {
  for (const auto& [name, value] :
       {std::pair{"FARANDOLE_RANK", "0"}, {"PMI_FD", "7"}, {"WORLD_SIZE", "1"}}) {
    Variables variables = stepOfThree();
    variables[name] = value;
    auto identity = identify(environment(variables));
    ASSERT_TRUE(identity.ok()) << name;
    EXPECT_FALSE(identity->store.has_value()) << name;
  }
}

TEST(SlurmStep, BatchScriptAndSingleTaskAreNoRanks) {
  Variables script = stepOfThree();
  script.erase("SLURM_STEP_ID");
  EXPECT_FALSE(slurmStep(environment(script)).value().has_value());
  Variables single = stepOfThree();
  single["SLURM_STEP_NUM_TASKS"] = "1";
  EXPECT_FALSE(slurmStep(environment(single)).value().has_value());
}

TEST(SlurmStep, OneNodeMeetsOnTheLoopback) {
  Variables variables = stepOfThree();
  variables["SLURM_STEP_TASKS_PER_NODE"] = "3";
  variables["SLURM_NODEID"] = "0";
  EXPECT_EQ(slurmStep(environment(variables)).value()->at("MASTER_ADDR"), "127.0.0.1");
}

TEST(SlurmStep, SeveralNodesNeedASecret) {
  Variables variables = stepOfThree();
  variables.erase("FARANDOLE_SECRET");
  auto identity = identify(environment(variables));
  ASSERT_FALSE(identity.ok());
  EXPECT_THAT(identity.status().message(), HasSubstr("FARANDOLE_SECRET_FILE"));
}

TEST(SlurmStep, NonsenseIsRefusedByName) {
  for (const auto& [name, value] : {std::pair{"SLURM_STEP_NUM_TASKS", "many"},
                                    {"SLURM_PROCID", "-1"},
                                    {"SLURM_NODEID", "9999999999"},
                                    {"SLURM_STEP_TASKS_PER_NODE", "2(x"},
                                    {"SLURM_STEP_TASKS_PER_NODE", "7"},
                                    {"SLURM_STEP_NODELIST", "node["}}) {
    Variables variables = stepOfThree();
    variables[name] = value;
    auto step = slurmStep(environment(variables));
    ASSERT_FALSE(step.ok()) << name << "=" << value;
    EXPECT_THAT(step.status().message(), HasSubstr(std::string(name) + "=" + value));
  }
}

TEST(SlurmStep, ReadsHostListsAndTaskCounts) {
  EXPECT_EQ(firstSlurmHost("alpha"), "alpha");
  EXPECT_EQ(firstSlurmHost("alpha,beta"), "alpha");
  EXPECT_EQ(firstSlurmHost("node[07-09,12],login"), "node07");
  EXPECT_EQ(firstSlurmHost("n[3]"), "n3");
  EXPECT_EQ(firstSlurmHost("rack[1-2]n[01-16]"), "rack1n01");
  EXPECT_EQ(firstSlurmHost("n[1-2].cluster,x"), "n1.cluster");
  EXPECT_EQ(firstSlurmHost("n[]"), "");
  EXPECT_EQ(slurmTasksOf("2(x3),1", 0), 2);
  EXPECT_EQ(slurmTasksOf("2(x3),1", 2), 2);
  EXPECT_EQ(slurmTasksOf("2(x3),1", 3), 1);
  EXPECT_EQ(slurmTasksOf("2(x3),1", 4), 0);
  EXPECT_EQ(slurmTasksOf("", 0), 0);
}

}  // namespace
}  // namespace farandole::runtime
