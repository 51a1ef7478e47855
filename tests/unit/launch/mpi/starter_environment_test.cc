#include "launch/mpi/starter_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace farandole::launch::mpi {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

// Hydra sends to the other hosts, in clear, whatever it finds.
TEST(MpiStarterEnvironment, HoldsWhatAStarterNeedsAndNoSecrets) {
  const char* variables[] = {"PATH=/bin",
                             "HOME=/home/me",
                             "LC_ALL=C",
                             "HYDRA_DEBUG=1",
                             "I_MPI_ROOT=/opt/intel",
                             "OMPI_MCA_btl=tcp",
                             "UCX_TLS=tcp",
                             "SLURM_JOB_ID=7",
                             "SSH_AUTH_SOCK=/run/agent",
                             "HF_TOKEN=a",
                             "AWS_SECRET_ACCESS_KEY=b",
                             "MY_PASSWORD=c",
                             "https_proxy=http://me:word@proxy:3128/",
                             "OF_A_KIND_THAT_NOBODY_KNOWS=d",
                             "SLURM_JWT=e",
                             "I_MPI_LICENCE_TOKEN=f",
                             "OMPI_MCA_store=https://me:word@store/",
                             nullptr};
  const StarterEnvironment result = starterEnvironment({}, variables);
  EXPECT_THAT(result.entries,
              ElementsAre("PATH=/bin", "HOME=/home/me", "LC_ALL=C", "HYDRA_DEBUG=1",
                          "I_MPI_ROOT=/opt/intel", "OMPI_MCA_btl=tcp", "UCX_TLS=tcp",
                          "SLURM_JOB_ID=7", "SSH_AUTH_SOCK=/run/agent"));
  EXPECT_THAT(result.held, ElementsAre(Pair("HF_TOKEN", "a"), Pair("AWS_SECRET_ACCESS_KEY", "b"),
                                       Pair("MY_PASSWORD", "c"),
                                       Pair("https_proxy", "http://me:word@proxy:3128/"),
                                       Pair("OF_A_KIND_THAT_NOBODY_KNOWS", "d"),
                                       Pair("SLURM_JWT", "e"), Pair("I_MPI_LICENCE_TOKEN", "f"),
                                       Pair("OMPI_MCA_store", "https://me:word@store/")));
}

TEST(MpiStarterEnvironment, TheJobsSecretAndAnEnclosingJobGoNowhere) {
  const char* variables[] = {"FARANDOLE_SECRET=00ff", "FARANDOLE_SECRET_FILE=/s", "PMI_RANK=3",
                             "PMIX_RANK=3",           "OMPI_COMM_WORLD_RANK=3",   nullptr};
  const StarterEnvironment result = starterEnvironment({}, variables);
  EXPECT_THAT(result.entries, IsEmpty());
  EXPECT_THAT(result.held, IsEmpty());
}

TEST(MpiStarterEnvironment, WhatItIsToldOutranksTheUsers) {
  const char* variables[] = {"PATH=/bin", "HYDRA_LAUNCHER=fork", nullptr};
  const StarterEnvironment result =
      starterEnvironment({{"HYDRA_LAUNCHER", "ssh"}, {"HYDRA_LAUNCHER", "rsh"}}, variables);
  EXPECT_THAT(result.entries, ElementsAre("HYDRA_LAUNCHER=ssh", "PATH=/bin"));
  EXPECT_THAT(result.held, IsEmpty());
}

}  // namespace
}  // namespace farandole::launch::mpi
