#include "launch/mpi/starter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace farandole::launch::mpi {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

TEST(MpiStarterProgram, IsKnownByWhatItSaysOfItself) {
  const struct {
    const char* text;
    Starter::Kind kind;
    const char* what;
  } kKnown[] = {
      {"mpirun (Open MPI) 4.1.4\n\nReport bugs to …\n", Starter::Kind::kOpenMpi, "Open MPI 4.1.4"},
      {"mpirun (Open MPI) 5.0.7\n", Starter::Kind::kOpenMpi, "Open MPI 5.0.7"},
      {"HYDRA build details:\n    Version:                                 4.0.2\n",
       Starter::Kind::kHydra, "MPICH 4.0.2"},
      {"Intel(R) MPI Library for Linux* OS, Version 2021.19 Build 20260101 (id: 0)\n",
       Starter::Kind::kIntel, "Intel MPI 2021.19"},
  };
  for (const auto& [text, kind, what] : kKnown) {
    const auto starter = starterFrom(text);
    ASSERT_TRUE(starter) << text;
    EXPECT_EQ(starter->kind, kind);
    EXPECT_EQ(starter->what, what);
  }
  EXPECT_FALSE(starterFrom("farandole 0.1.0"));
  EXPECT_FALSE(starterFrom(""));
}

TEST(MpiStarterProgram, IsLookedForWhereItsNameSays) {
  EXPECT_THAT(starterCandidates("mpich").value(), Contains("mpiexec.hydra"));
  EXPECT_THAT(starterCandidates("openmpi").value(), Not(Contains("mpiexec.mpich")));
  EXPECT_THAT(starterCandidates("/opt/mpi/bin/mpirun").value(),
              testing::ElementsAre("/opt/mpi/bin/mpirun"));
  EXPECT_EQ(starterCandidates("/opt/mpi/lib/libmpi.so")->front(), "/opt/mpi/lib/../bin/mpirun");
  EXPECT_THAT(starterCandidates("lam").status().message(),
              HasSubstr("--mpi lam: expected openmpi, mpich"));
}

// A folder that is the whole PATH.
class MpiStarterInPath : public testing::Test {
 protected:
  MpiStarterInPath() {
    char name[] = "/tmp/farandole-unit-XXXXXX";
    folder_ = ::mkdtemp(name);
    before_ = std::getenv("PATH");
    ::setenv("PATH", folder_.c_str(), 1);
  }
  ~MpiStarterInPath() override {
    ::setenv("PATH", before_.c_str(), 1);
    std::filesystem::remove_all(folder_);
  }
  void program(const std::string& name, const std::string& text) {
    std::ofstream(folder_ + "/" + name) << "#!/bin/sh\n" << text;
    std::filesystem::permissions(folder_ + "/" + name, std::filesystem::perms::owner_all);
  }
  std::string folder_;
  std::string before_;
};

TEST_F(MpiStarterInPath, MissingIsOneLineThatSaysWhatToInstall) {
  const auto none = findStarter("");
  EXPECT_THAT(none.status().message(), HasSubstr("no MPI is installed here"));
  EXPECT_THAT(none.status().message(), HasSubstr("openmpi-bin"));
  EXPECT_THAT(none.status().message(), Not(HasSubstr("\n")));
  program("mpirun", "echo 'mpirun (Open MPI) 4.1.4'");
  EXPECT_THAT(findStarter("mpich").status().message(), HasSubstr("no mpich is installed here"));
  EXPECT_EQ(findStarter("")->program, folder_ + "/mpirun");
}

TEST_F(MpiStarterInPath, OurOwnAliasIsNeverTaken) {
  std::filesystem::create_symlink(std::filesystem::read_symlink("/proc/self/exe"),
                                  folder_ + "/mpirun");
  EXPECT_FALSE(findStarter("").ok());
  program("mpiexec", "echo 'HYDRA build details:'; echo 'Version:  4.0.2'");
  EXPECT_EQ(findStarter("")->what, "MPICH 4.0.2");
}

TEST_F(MpiStarterInPath, WhatFailsIsPassedOver) {
  program("mpirun", "exit 3");
  program("mpiexec", "echo 'mpiexec (OpenRTE) 4.1.4'");
  EXPECT_EQ(findStarter("openmpi")->program, folder_ + "/mpiexec");
}

}  // namespace
}  // namespace farandole::launch::mpi
