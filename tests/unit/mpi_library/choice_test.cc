#include <gtest/gtest.h>

#include <map>

#include "mpi_library/mpi_library.h"

namespace farandole::mpi_library {
namespace {

using Kind = MpiStarter::Kind;

GetEnv environment(std::map<std::string, std::string> variables) {
  // Shared: the pointers handed out must outlive the call.
  auto kept = std::make_shared<std::map<std::string, std::string>>(std::move(variables));
  return [kept](const char* variable) -> const char* {
    const auto found = kept->find(variable);
    return found == kept->end() ? nullptr : found->second.c_str();
  };
}

TEST(MpiStarter, NobodyWithoutVariables) {
  EXPECT_EQ(mpiStarter(environment({})).kind, Kind::kNone);
}

TEST(MpiStarter, VariablesForScriptsAreNoStarter) {
  // What our own launcher sets for programs that look for a rank.
  const auto starter = mpiStarter(environment({{"OMPI_COMM_WORLD_RANK", "1"},
                                               {"OMPI_COMM_WORLD_SIZE", "4"},
                                               {"PMI_RANK", "1"},
                                               {"PMI_SIZE", "4"}}));
  EXPECT_EQ(starter.kind, Kind::kNone);
  EXPECT_EQ(starter.size, 0);
}

TEST(MpiStarter, OpenMpi) {
  const auto starter = mpiStarter(
      environment({{"PMIX_NAMESPACE", "123"}, {"PMIX_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "3"}}));
  EXPECT_EQ(starter.kind, Kind::kOpenMpi);
  EXPECT_EQ(starter.size, 3);
}

TEST(MpiStarter, Hydra) {
  EXPECT_EQ(mpiStarter(environment({{"PMI_FD", "7"}, {"PMI_SIZE", "5"}})).kind, Kind::kMpich);
  const auto starter = mpiStarter(environment({{"PMI_PORT", "host:1"}, {"PMI_SIZE", "5"}}));
  EXPECT_EQ(starter.kind, Kind::kMpich);
  EXPECT_EQ(starter.size, 5);
}

TEST(MpiStarter, SlurmServesBoth) {
  EXPECT_EQ(mpiStarter(environment({{"PMIX_NAMESPACE", "slurm.pmix.1.0"},
                                    {"PMIX_RANK", "0"},
                                    {"SLURM_STEP_NUM_TASKS", "8"}}))
                .kind,
            Kind::kEither);
  EXPECT_EQ(
      mpiStarter(environment({{"PMI_FD", "7"}, {"PMI_JOBID", "1"}, {"SLURM_PROCID", "0"}})).kind,
      Kind::kEither);
}

TEST(MpiStarter, ANumberThatIsNoneIsNotKnown) {
  EXPECT_EQ(mpiStarter(environment({{"PMI_FD", "7"}, {"PMI_SIZE", "many"}})).size, 0);
  EXPECT_EQ(mpiStarter(environment({{"PMI_FD", "7"}, {"PMI_SIZE", "-3"}})).size, 0);
}

TEST(MpiName, Names) {
  EXPECT_FALSE(parseMpiName("").value().given);
  EXPECT_EQ(parseMpiName("openmpi").value().abi, MpiAbi::kOpenMpi);
  EXPECT_EQ(parseMpiName("mpich").value().abi, MpiAbi::kMpich);
  EXPECT_EQ(parseMpiName("intelmpi").value().abi, MpiAbi::kMpich);
  EXPECT_TRUE(parseMpiName("/opt/x/libmpi.so").value().isPath);
  const auto wrong = parseMpiName("lam");
  ASSERT_FALSE(wrong.ok());
  EXPECT_NE(wrong.status().message().find("\"lam\""), std::string::npos);
}

TEST(MpiCandidates, TheStarterDecides) {
  const auto kinds = mpiCandidates({Kind::kMpich, 2}, {});
  EXPECT_EQ(kinds.value(), std::vector{MpiAbi::kMpich});
  EXPECT_EQ(mpiCandidates({}, {}).value().size(), 2u);
  EXPECT_EQ(mpiCandidates({Kind::kEither, 2}, {}).value().size(), 2u);
  // Distributions build MPICH for PMI 2, and Open MPI for PMIx.
  EXPECT_EQ(mpiCandidates({Kind::kEither, 2, MpiAbi::kMpich}, {}).value().front(), MpiAbi::kMpich);
}

TEST(MpiCandidates, ANameThatContradictsTheStarterIsAnError) {
  const MpiName wanted = parseMpiName("openmpi").value();
  EXPECT_EQ(mpiCandidates({}, wanted).value(), std::vector{MpiAbi::kOpenMpi});
  EXPECT_EQ(mpiCandidates({Kind::kOpenMpi, 2}, wanted).value(), std::vector{MpiAbi::kOpenMpi});
  const auto contradiction = mpiCandidates({Kind::kMpich, 2}, wanted);
  ASSERT_FALSE(contradiction.ok());
  EXPECT_NE(contradiction.status().message().find("mpirun of mpich"), std::string::npos);
}

TEST(MpiLibrary, AMissingFileIsNamed) {
  const auto library = loadMpiLibrary("/nowhere/libmpi.so.40", environment({}));
  ASSERT_FALSE(library.ok());
  EXPECT_EQ(library.status().code(), Code::kUnavailable);
  EXPECT_NE(library.status().message().find("/nowhere/libmpi.so.40"), std::string::npos);
  EXPECT_EQ(library.status().message().find('\n'), std::string::npos);
}

TEST(MpiLibrary, ALibraryThatIsNoMpiIsRefused) {
  // Every process has it; it is loaded to be looked at, and let go.
  const auto library = loadMpiLibrary("/proc/self/exe", environment({}));
  ASSERT_FALSE(library.ok());
}

}  // namespace
}  // namespace farandole::mpi_library
