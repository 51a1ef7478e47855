// The folders in which Open MPI keeps its files.
#include "launch/mpi/scratch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace farandole::launch::mpi {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class ScratchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    plan_.job = "unit-" + std::to_string(::getpid());
    plan_.total = 2;
    plan_.settings.emplace_back("FARANDOLE_ENGINE", "mpi");
    folders_ = scratchFolders(plan_);
    ASSERT_EQ(folders_.size(), 2U);
  }
  void TearDown() override {
    for (const std::string& folder : folders_) fs::remove_all(folder);
  }

  launch::plan::JobPlan plan_;
  std::vector<std::string> folders_;
};

TEST_F(ScratchTest, OnlyJobsWithAnMpiHaveFolders) {
  plan_.settings.clear();
  EXPECT_THAT(scratchFolders(plan_), IsEmpty());
}

TEST_F(ScratchTest, IsPrivateAndRemovedWithAllThatIsInIt) {
  ASSERT_TRUE(makeScratch(folders_).ok());
  ASSERT_TRUE(makeScratch(folders_).ok());  // a job that is started again
  for (const std::string& folder : folders_) {
    EXPECT_EQ(fs::status(folder).permissions(), fs::perms::owner_all) << folder;
    fs::create_directories(folder + "/ompi.host.0/pid.1");
    std::ofstream(folder + "/ompi.host.0/pid.1/contact.txt") << "x";
  }
  std::vector<std::string> starter;
  useForStarter(plan_, starter);
  EXPECT_THAT(starter, Contains("OMPI_MCA_orte_tmpdir_base=" + folders_[0]));
  // What the user has said stays.
  std::vector<std::string> rank{"OMPI_MCA_btl_vader_backing_directory=/elsewhere"};
  useForRank(plan_, rank);
  EXPECT_THAT(rank, Not(Contains("OMPI_MCA_btl_vader_backing_directory=" + folders_[1])));
  EXPECT_THAT(rank, Contains("OMPI_MCA_btl_sm_backing_directory=" + folders_[1]));
  removeScratch(folders_);
  for (const std::string& folder : folders_) EXPECT_FALSE(fs::exists(folder)) << folder;
}

TEST_F(ScratchTest, WhatIsNotItsOwnIsNeitherUsedNorRemoved) {
  const std::string target = folders_[0] + ".target";
  fs::create_directory(target);
  std::ofstream(target + "/kept") << "x";
  fs::create_symlink(target, folders_[0]);
  fs::create_directory(folders_[1]);
  ::chmod(folders_[1].c_str(), 0777);
  EXPECT_THAT(makeScratch({folders_[0]}).message(), HasSubstr(folders_[0]));
  EXPECT_THAT(makeScratch({folders_[1]}).message(), HasSubstr(folders_[1]));
  std::vector<std::string> environment;
  useForStarter(plan_, environment);
  useForRank(plan_, environment);
  EXPECT_THAT(environment, IsEmpty());
  removeScratch(folders_);
  EXPECT_TRUE(fs::exists(target + "/kept"));
  EXPECT_TRUE(fs::exists(folders_[1]));
  fs::remove_all(target);
}

}  // namespace
}  // namespace farandole::launch::mpi
