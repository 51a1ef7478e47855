#include "launch/hosts/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "unit/launch/hosts/temp_folder.h"

namespace farandole::launch::hosts {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

using Variables = std::map<std::string, std::string>;

Result<std::optional<Allocation>> find(const Variables& variables,
                                       const std::string& hostFile = "/nonexistent") {
  return schedulerAllocation(
      [&](const char* name) -> const char* {
        const auto found = variables.find(name);
        return found == variables.end() ? nullptr : found->second.c_str();
      },
      hostFile);
}

// "source: hosts", or "none", or the error.
std::string found(const Variables& variables, const std::string& hostFile = "/nonexistent") {
  auto result = find(variables, hostFile);
  if (!result.ok()) return result.status().message();
  if (!*result) return "none";
  return (**result).source + ": " + formatHosts((**result).hosts);
}

TEST(Scheduler, NoneOfThem) {
  EXPECT_EQ(found({}), "none");
  EXPECT_EQ(found({{"SLURM_JOB_NODELIST", ""}, {"K_MPI_JOB_ROLE", "worker"}}), "none");
}

TEST(Scheduler, Slurm) {
  EXPECT_EQ(found({{"SLURM_JOB_ID", "17"},
                   {"SLURM_JOB_NODELIST", "node[01-03,07],gpu1"},
                   {"SLURM_JOB_NUM_NODES", "5"},
                   {"SLURM_TASKS_PER_NODE", "2(x3),1,4"}}),
            "Slurm job 17: node01:2,node02:2,node03:2,node07:1,gpu1:4");
  EXPECT_EQ(found({{"SLURM_JOBID", "9"},
                   {"SLURM_NODELIST", "gnode[10,20]"},
                   {"SLURM_NTASKS_PER_NODE", "4"},
                   {"SLURM_JOB_CPUS_PER_NODE", "8(x2)"}}),
            "Slurm job 9: gnode10:4,gnode20:4");
  EXPECT_EQ(found({{"SLURM_JOB_NODELIST", "a,b"},
                   {"SLURM_JOB_CPUS_PER_NODE", "40,8"},
                   {"SLURM_CPUS_PER_TASK", "4"}}),
            "Slurm: a:10,b:2");
  EXPECT_EQ(found({{"SLURM_JOB_NODELIST", "r[0-1]n[1-2]"}}), "Slurm: r0n1:1,r0n2:1,r1n1:1,r1n2:1");
  EXPECT_EQ(found({{"SLURM_JOB_NODELIST", "a,b"}, {"SLURM_TASKS_PER_NODE", "2,0"}}), "Slurm: a:2");
}

TEST(Scheduler, SlurmContradictions) {
  EXPECT_THAT(found({{"SLURM_JOB_NODELIST", "n[1-2]"}, {"SLURM_TASKS_PER_NODE", "2(x3)"}}),
              AllOf(StartsWith("SLURM_TASKS_PER_NODE='2(x3)': it speaks of 3 nodes"),
                    HasSubstr("SLURM_JOB_NODELIST='n[1-2]' names 2"), HasSubstr("-H a:2,b:2")));
  EXPECT_THAT(found({{"SLURM_JOB_NODELIST", "n[1-2]"}, {"SLURM_JOB_NUM_NODES", "3"}}),
              StartsWith("SLURM_JOB_NUM_NODES='3': but"));
  EXPECT_THAT(found({{"SLURM_JOB_ID", "17"}}), HasSubstr("SLURM_JOB_NODELIST is not set"));
  EXPECT_THAT(found({{"SLURM_JOB_NODELIST", "a"}, {"SLURM_HET_SIZE", "2"}}),
              StartsWith("SLURM_HET_SIZE='2'"));
  EXPECT_THAT(found({{"SLURM_JOB_NODELIST", "-oX"}}), StartsWith("SLURM_JOB_NODELIST='-oX'"));
  EXPECT_THAT(found({{"SLURM_JOB_NODELIST", "a["}}), HasSubstr("a bracket is missing"));
  for (const char* bad : {"2(x0)", "2(x)", "2(", "(x2)", "x", "2(x3", "2(3)", "-1", "2,,1",
                          "2(x99999999)", "99999999(x1)", "2(x"}) {
    EXPECT_THAT(found({{"SLURM_JOB_NODELIST", "a"}, {"SLURM_TASKS_PER_NODE", bad}}),
                StartsWith("SLURM_TASKS_PER_NODE="))
        << bad;
  }
}

TEST(Scheduler, Lsf) {
  TempFolder folder;
  EXPECT_EQ(found({{"LSB_JOBID", "5"},
                   {"LSB_MCPU_HOSTS", "hostA 2 hostB 1 "},
                   {"LSB_HOSTS", "hostA hostA hostB"}}),
            "LSF job 5: hostA:2,hostB:1");
  EXPECT_EQ(found({{"LSB_DJOB_HOSTFILE", folder.write("h", "a\nb\na\n")}}), "LSF: a:2,b:1");
  EXPECT_EQ(found({{"LSB_HOSTS", "a a b"}}), "LSF: a:2,b:1");
  EXPECT_THAT(found({{"LSB_MCPU_HOSTS", "a 2"}, {"LSB_HOSTS", "a"}}),
              StartsWith("LSB_HOSTS='a': that is a:1, but LSB_MCPU_HOSTS says a:2"));
  EXPECT_THAT(found({{"LSB_MCPU_HOSTS", "a 2 b"}}), HasSubstr("after 'b'"));
  EXPECT_THAT(found({{"LSB_MCPU_HOSTS", "a 0"}}), HasSubstr("after 'a'"));
  EXPECT_THAT(found({{"LSB_JOBID", "5"}}), HasSubstr("LSB_MCPU_HOSTS"));
}

TEST(Scheduler, Pbs) {
  TempFolder folder;
  EXPECT_EQ(found({{"PBS_JOBID", "12.server"},
                   {"PBS_NODEFILE", folder.write("n", "n1\r\nn1\nn2\n\nn1")}}),
            "PBS job 12.server: n1:3,n2:1");
  EXPECT_THAT(found({{"PBS_NODEFILE", "/nonexistent/f"}}),
              AllOf(StartsWith("PBS_NODEFILE="), HasSubstr("No such file")));
  EXPECT_THAT(found({{"PBS_NODEFILE", folder.write("e", "\n")}}), HasSubstr("names no host"));
  EXPECT_THAT(found({{"PBS_NODEFILE", folder.write("b", "-v\n")}}), HasSubstr("begins with '-'"));
  EXPECT_THAT(found({{"PBS_JOBID", "1"}}), HasSubstr("PBS_NODEFILE is not set"));
}

TEST(Scheduler, MpiOperator) {
  TempFolder folder;
  const std::string file = folder.write("hostfile", "j-worker-0.j.ns.svc slots=2\nj-worker-1\n");
  EXPECT_EQ(found({{"K_MPI_JOB_ROLE", "launcher"}}, file),
            "MPIJob (" + file + "): j-worker-0.j.ns.svc:2,j-worker-1");
  EXPECT_EQ(found({{"K_MPI_JOB_ROLE", "launcher"},
                   {"OMPI_MCA_orte_default_hostfile", file},
                   {"OMPI_MCA_orte_set_default_slots", "3"}}),
            "MPIJob (" + file + "): j-worker-0.j.ns.svc:2,j-worker-1:3");
  EXPECT_EQ(found({{"I_MPI_HYDRA_HOST_FILE", file}, {"I_MPI_PERHOST", "all"}}),
            "I_MPI_HYDRA_HOST_FILE (" + file + "): j-worker-0.j.ns.svc:2,j-worker-1");
  EXPECT_THAT(found({{"HYDRA_HOST_FILE", file}}), StartsWith("HYDRA_HOST_FILE ("));
  EXPECT_THAT(found({{"K_MPI_JOB_ROLE", "launcher"}}), HasSubstr("/nonexistent: No such file"));
  EXPECT_THAT(found({{"HYDRA_HOST_FILE", file}, {"OMPI_MCA_orte_default_hostfile", "/x"}}),
              StartsWith("HYDRA_HOST_FILE="));
}

TEST(Scheduler, RandomValuesNeverCrash) {
  std::mt19937 random(13);
  const std::string alphabet = "a1-0,[]()x \n\xff";
  for (int round = 0; round < 5000; ++round) {
    const auto text = [&] {
      std::string result;
      for (auto i = random() % 12; i > 0; --i) result += alphabet[random() % alphabet.size()];
      return result;
    };
    const Variables variables =
        round % 2 == 0 ? Variables{{"SLURM_JOB_NODELIST", text()}, {"SLURM_TASKS_PER_NODE", text()}}
                       : Variables{{"LSB_MCPU_HOSTS", text()}};
    auto result = find(variables);
    if (!result.ok() || !*result) continue;
    for (const HostSpec& host : (**result).hosts) {
      EXPECT_TRUE(checkHostName(host.name).ok());
      EXPECT_GT(host.slots, 0);
    }
  }
}

}  // namespace
}  // namespace farandole::launch::hosts
