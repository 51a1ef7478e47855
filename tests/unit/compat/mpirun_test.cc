// Words of mpirun and mpiexec in those of farandole run.
#include <gmock/gmock.h>

#include "fake_machine.h"

namespace farandole::compat {
namespace mpirun_test {

using testing::HasSubstr;
using testing::StartsWith;

std::string run(const std::string& line, const FakeMachine& machine = {}) {
  return lineOf(translateMpirun, line, machine);
}

TEST(Mpirun, LineOfTheWorkflow) {
  const std::string line =
      "-np 8 --hostfile /kubeflow/openmpi/assets/hostfile --allow-run-as-root --display-map "
      "--tag-output --timestamp-output -mca btl_tcp_if_exclude lo,docker0 --mca "
      "plm_rsh_no_tree_spawn 1 -bind-to none -map-by slot -mca pml ob1 -mca btl ^openib sh -c "
      "'NCCL_SOCKET_IFNAME=eth0 NCCL_MIN_NRINGS=8 NCCL_DEBUG=INFO python3.6 tf_cnn_benchmarks.py'";
  EXPECT_EQ(run(line),
            "-np 8 --hostfile /kubeflow/openmpi/assets/hostfile --display-map-ompi --tag-output "
            "--timestamp-output --bind-to none --map-by slot -- sh -c 'NCCL_SOCKET_IFNAME=eth0 "
            "NCCL_MIN_NRINGS=8 NCCL_DEBUG=INFO python3.6 tf_cnn_benchmarks.py'");
  EXPECT_EQ(notesOf(translateMpirun, line),
            "interfaces are chosen by who can be reached through them: excluding lo,docker0 is not "
            "needed\n");
}

// Without marks the lines are shown as they are: each expectation begins with the options.
TEST(Mpirun, FlagsBecomeOptions) {
  const std::pair<const char*, const char*> kTable[] = {
      // Open MPI.
      {"-n 2", "-np 2 --no-prefix"},
      {"--np 2", "-np 2 --no-prefix"},
      {"-c 2 -H a:2,b", "-np 2 --hosts a:2,b --no-prefix"},
      {"-np 2 -host a,b", "-np 2 --hosts a,b --no-prefix"},
      {"-np 2 -H a -H b:2", "-np 2 --hosts a,b:2 --no-prefix"},
      {"-np 2 --ppr 1:node", "-np 2 --ranks-per-host 1 --no-prefix"},
      {"-np 2 -machinefile f", "-np 2 --hostfile f --no-prefix"},
      {"-np 2 -x A -x B=c", "-np 2 -x A -x B=c --no-prefix"},
      {"-np 2 -wdir /tmp", "-np 2 --wdir /tmp --no-prefix"},
      {"-np 4 -npernode 2", "-np 4 --ranks-per-host 2 --no-prefix"},
      {"-np 4 -N 2", "-np 4 --ranks-per-host 2 --no-prefix"},
      {"-np 4 --pernode", "-np 4 --ranks-per-host 1 --no-prefix"},
      {"-np 4 --map-by ppr:2:node:pe=3", "-np 4 --ranks-per-host 2 --threads 3 --no-prefix"},
      {"-np 4 --map-by socket:PE=4 --bind-to L3cache",
       "-np 4 --map-by slot --threads 4 --bind-to numa --no-prefix"},
      {"-np 4 --map-by node --bind-to core", "-np 4 --map-by node --bind-to core --no-prefix"},
      {"-np 4 --bynode --bind-to-none", "-np 4 --map-by node --bind-to none --no-prefix"},
      {"-np 4 --oversubscribe", "-np 4 --no-prefix"},
      {"-np 4 --output-filename d", "-np 4 --output-filename d --no-prefix"},
      {"-np 4 --output tag,timestamp --display map",
       "-np 4 --tag-output --timestamp-output --display-map-ompi"},
      {"-np 4 -mca plm_rsh_args '-p 12345 -i k'",
       "-np 4 --ssh-port 12345 --ssh-identity-file k --no-prefix"},
      {"-np 4 -mca plm_rsh_args -p12345 -mca btl_tcp_if_include eth0",
       "-np 4 --ssh-port 12345 --network-interfaces eth0 --no-prefix"},
      {"-np 4 --do-not-launch", "-np 4 --dry-run --no-prefix"},
      // Hydra.
      {"-n 4 -ppn 2 -f hosts", "-np 4 --ranks-per-host 2 --hostfile hosts --no-prefix"},
      {"-n 4 -hosts a,b -perhost 2", "-np 4 --ranks-per-host 2 --hosts a,b --no-prefix"},
      {"-n 4 -genv A b -env C=d -genvlist E,F", "-np 4 -x E -x F --no-prefix --env A=b --env C=d"},
      {"-n 4 -iface eth1 -launcher ssh", "-np 4 --network-interfaces eth1 --no-prefix"},
      {"-l -n 4", "-np 4"},
      {"-n 4 -prepend-rank -genvall", "-np 4"},
  };
  for (const auto& [theirs, ours] : kTable) {
    EXPECT_EQ(run(std::string(theirs) + " cmd -l"), std::string(ours) + " -- cmd -l") << theirs;
  }
}

TEST(Mpirun, RefusesWithAReason) {
  const std::pair<const char*, const char*> kTable[] = {
      {"-np 1 a : -np 1 b", "several programs in one job"},
      {"-np 1 --timeout 5 cmd", "type timeout SECONDS"},
      {"-np 1 -launcher slurm cmd", "through ssh"},
      {"-np 1 -rf f cmd", "leave it out"},
      {"-np 1 --bind-to moon cmd", "none, core, socket or numa"},
      {"-np 1 --map-by ppr:2:socket cmd", "ppr:N:node"},
      {"-np 1 --map-by ppr cmd", "slot or node"},
      {"-np 1 --map-by ppr: cmd", "whole number"},
      {"-np 1 --hostfil f cmd", "did you mean --hostfile?"},
      {"-np 1 -mca plm_rsh_args -p cmd", "-p needs a value"},
      {"-np 1 -mca pml", "two values"},
      {"-np 1", "what shall be run?"},
  };
  for (const auto& [line, reason] : kTable) {
    EXPECT_THAT(run(line), StartsWith("error: ")) << line;
    EXPECT_THAT(run(line), HasSubstr(reason)) << line;
  }
}

TEST(Mpirun, WithoutANumberThisMachineIsFilled) {
  EXPECT_EQ(run("cmd"), "-np 56 --no-prefix -- cmd");
  EXPECT_EQ(run("-H a:2 cmd"), "--hosts a:2 --no-prefix -- cmd");
  EXPECT_EQ(run("-ppn 3 cmd"), "--ranks-per-host 3 --no-prefix -- cmd");
}

// What an MPIJob's launcher pod finds in its environment.
TEST(Mpirun, EnvironmentOfAnOperator) {
  FakeMachine pod;
  pod.variables = {{"OMPI_MCA_orte_default_hostfile", "/etc/mpi/hostfile"},
                   {"OMPI_MCA_plm_rsh_args", "-o ConnectionAttempts=10"},
                   {"OMPI_MCA_orte_set_default_slots", "2"}};
  EXPECT_EQ(run("-np 4 cmd", pod),
            "-np 4 --hostfile /etc/mpi/hostfile --slots-per-host 2 --no-prefix -- cmd");
  EXPECT_EQ(run("-np 4 -H a,b cmd", pod),
            "-np 4 --hosts a,b --slots-per-host 2 --no-prefix -- cmd");
  pod.variables = {{"I_MPI_HYDRA_HOST_FILE", "/etc/mpi/hostfile"}, {"I_MPI_PERHOST", "all"}};
  EXPECT_EQ(run("-np 4 cmd", pod), "-np 4 --hostfile /etc/mpi/hostfile --no-prefix -- cmd");
  pod.variables["I_MPI_PERHOST"] = "2";
  EXPECT_EQ(run("-np 4 cmd", pod),
            "-np 4 --hostfile /etc/mpi/hostfile --ranks-per-host 2 --no-prefix -- cmd");
  EXPECT_EQ(run("-np 4 -ppn 1 cmd", pod),
            "-np 4 --ranks-per-host 1 --hostfile /etc/mpi/hostfile --no-prefix -- cmd");
}

TEST(Mpirun, UnknownParametersAreNotes) {
  EXPECT_EQ(notesOf(translateMpirun, "-np 2 --mca coll_tuned_x 1 cmd"),
            "--mca coll_tuned_x 1: only means something to MPI\n");
  EXPECT_THAT(notesOf(translateMpirun, "-np 2 --mca btl_tcp_if_exclude eth3 cmd"),
              HasSubstr("if eth3 must not be used"));
  EXPECT_THAT(notesOf(translateMpirun, "-np 2 --mca plm_rsh_args -v cmd"),
              HasSubstr("~/.ssh/config"));
}

}  // namespace mpirun_test
}  // namespace farandole::compat
