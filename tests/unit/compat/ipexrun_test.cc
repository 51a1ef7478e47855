// ipexrun's words in those of farandole run.
#include <gmock/gmock.h>

#include "fake_machine.h"

namespace farandole::compat {
namespace ipexrun_test {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::string run(const std::string& line, const FakeMachine& machine = {}) {
  return lineOf(translateIpexrun, line, machine);
}

TEST(Ipexrun, LineOfTheWorkflow) {
  EXPECT_EQ(run("--distributed --nproc_per_node=2 --nnodes=2 --hostfile hostfile pytorch_mnist.py "
                "--no-cuda --save-model"),
            "-np 4 --hostfile hostfile --ranks-per-host 2 --bind-to numa -- python3 -u "
            "pytorch_mnist.py --no-cuda --save-model");
  EXPECT_EQ(notesOf(translateIpexrun,
                    "--distributed --nproc_per_node=2 --nnodes=2 --hostfile "
                    "hostfile pytorch_mnist.py --no-cuda --save-model"),
            "");
}

TEST(Ipexrun, OneMachineIsPinned) {
  EXPECT_EQ(run("cpu --nnodes 1 --nprocs-per-node 2 t.py"),
            "-np 2 --threads 24 --cpus '0-27;28-55' --env "
            "'I_MPI_PIN_DOMAIN=[0xffffff0,0xffffff00000000]' --env CCL_WORKER_COUNT=4 --env "
            "CCL_WORKER_AFFINITY=0,1,2,3,28,29,30,31 -- python3 -u t.py");
  // Old and new spellings, dashes and underscores.
  const std::string expected = run("--nnodes 1 --nprocs-per-node 2 --logical-cores-for-ccl t.py");
  EXPECT_THAT(expected, HasSubstr("CCL_WORKER_AFFINITY=56,57,58,59,84,85,86,87"));
  EXPECT_EQ(run("--distributed --nproc_per_node 2 --logical_core_for_ccl t.py"), expected);
  // Without a number: one rank per NUMA node.
  EXPECT_THAT(run("--nnodes 1 t.py"), StartsWith("-np 2 "));
  EXPECT_THAT(run("--nnodes 1 --nodes-list 1 t.py"), StartsWith("-np 1 "));
}

TEST(Ipexrun, ASmallMachineStillRuns) {
  FakeMachine small;
  small.topology = UsableCpus::uniform(1, 2);
  const std::string line = "--nnodes 1 --nprocs-per-node 2 t.py";
  EXPECT_EQ(run(line, small),
            "-np 2 --threads 1 --cpus '0;1' --env 'I_MPI_PIN_DOMAIN=[0x1,0x2]' -- python3 -u t.py");
  EXPECT_THAT(notesOf(translateIpexrun, line, small), HasSubstr("none are kept"));
  EXPECT_EQ(run("--nnodes 1 --nprocs-per-node 3 t.py", small),
            "-np 3 --threads 1 -- python3 -u t.py");
}

TEST(Ipexrun, WhatTheUserSetStays) {
  FakeMachine machine;
  machine.variables = {{"OMP_NUM_THREADS", "3"}, {"CCL_WORKER_COUNT", "1"}};
  const std::string line = "--nnodes 1 t.py";
  EXPECT_THAT(run(line, machine), Not(HasSubstr("--threads")));
  EXPECT_THAT(run(line, machine), Not(HasSubstr("CCL_WORKER_COUNT")));
  EXPECT_THAT(notesOf(translateIpexrun, line, machine),
              HasSubstr("OMP_NUM_THREADS=3 is set already and stays (instead of 24)"));
}

TEST(Ipexrun, OneInstance) {
  EXPECT_EQ(run("--omp-runtime default t.py a"),
            "-np 1 --cpus 0-55 --threads 56 --env OMP_SCHEDULE=STATIC --env OMP_PROC_BIND=CLOSE -- "
            "python3 -u t.py a");
  EXPECT_THAT(run("-m pkg a"), EndsWith("-- python3 -u -m pkg a"));
  EXPECT_THAT(run("--no-python ./prog a"), EndsWith("-- ./prog a"));
  EXPECT_THAT(run("--log_dir d --log-file-prefix p t.py"), HasSubstr("--output-filename d/p"));
  EXPECT_THAT(run("--log_path d t.py"), HasSubstr("--output-filename d "));
}

TEST(Ipexrun, InstancesKnowNothingOfEachOther) {
  const std::string line = run("--ninstances 2 t.py");
  EXPECT_THAT(line, StartsWith("-np 2 --cpus '0-27;28-55' --threads 28 --quiet "));
  EXPECT_THAT(line, HasSubstr("-- env -u FARANDOLE_RANK -u FARANDOLE_SIZE "));
  EXPECT_THAT(line, HasSubstr("-u WORLD_SIZE"));
  EXPECT_THAT(line, Not(HasSubstr("FARANDOLE_JOB")));
  EXPECT_THAT(line, EndsWith(" python3 -u t.py"));
}

TEST(Ipexrun, KindsOfInstances) {
  EXPECT_THAT(run("--latency-mode t.py"), StartsWith("-np 14 --cpus '0-3;4-7;8-11;"));
  EXPECT_THAT(run("--throughput_mode t.py"), StartsWith("-np 2 --cpus '0-27;28-55' "));
  EXPECT_THAT(run("--ncore_per_instance 8 --ninstances 2 t.py"),
              StartsWith("-np 2 --cpus '0-7;8-15' --threads 8 "));
  EXPECT_THAT(run("--cores-list 4-7 t.py"), StartsWith("-np 1 --cpus 4-7 --threads 4 "));
  EXPECT_THAT(run("--node_id 1 t.py"), StartsWith("-np 1 --cpus 28-55 --threads 28 "));
  EXPECT_THAT(run("--ninstances 4 --instance-idx 2 t.py"),
              StartsWith("-np 1 --cpus 28-41 --threads 14 "));
  EXPECT_EQ(run("--ninstances 4 --instance_idx=-1 t.py"), run("--ninstances 4 t.py"));
}

TEST(Ipexrun, Libraries) {
  FakeMachine machine;
  machine.variables = {
      {"CONDA_PREFIX", "/conda"}, {"LD_PRELOAD", "/mine.so"}, {"HOME", "/home/me"}};
  machine.files = {"/usr/lib/x86_64-linux-gnu/libtcmalloc.so.4",
                   "/home/me/.local/lib/libjemalloc.so", "/conda/lib/libiomp5.so"};
  const std::string line = run("t.py", machine);
  EXPECT_THAT(line, HasSubstr("LD_PRELOAD=/usr/lib/x86_64-linux-gnu/libtcmalloc.so.4:"
                              "/conda/lib/libiomp5.so:/mine.so"));
  EXPECT_THAT(line, HasSubstr("KMP_AFFINITY=granularity=fine,compact,1,0"));
  EXPECT_THAT(line, HasSubstr("KMP_BLOCKTIME=1"));
  const std::string jemalloc = run("--enable_jemalloc --disable_iomp t.py", machine);
  EXPECT_THAT(jemalloc, HasSubstr("LD_PRELOAD=/home/me/.local/lib/libjemalloc.so:/mine.so"));
  EXPECT_THAT(jemalloc, HasSubstr("MALLOC_CONF=oversize_threshold:1,background_thread:true"));
  EXPECT_THAT(run("--memory-allocator jemalloc --benchmark t.py", machine),
              HasSubstr("muzzy_decay_ms:-1"));
  EXPECT_THAT(run("--use_default_allocator --omp-runtime default t.py", machine),
              Not(HasSubstr("LD_PRELOAD")));
}

TEST(Ipexrun, MissingLibrariesAreNotesIfTheyWereAskedFor) {
  EXPECT_EQ(notesOf(translateIpexrun, "--memory-allocator tcmalloc --omp-runtime intel t.py"),
            "--memory-allocator: libtcmalloc.so was not found; the usual one is used\n"
            "--omp-runtime: libiomp5.so was not found; the usual one is used\n");
  EXPECT_EQ(notesOf(translateIpexrun, "t.py"), "");
}

// Threads that the main thread starts inherit its CPUs: with several ranks OpenMP must not bind it.
TEST(Ipexrun, OpenMpDoesNotBindRanksThatWorkTogether) {
  EXPECT_THAT(run("--nnodes 1 t.py"), Not(HasSubstr("OMP_PROC_BIND")));
}

TEST(Ipexrun, RefusesWithAReason) {
  const std::pair<const char*, const char*> kTable[] = {
      {"--nnodes x t.py", "a whole number from 0 to 4096"},
      {"--nnodes 4096 --nprocs-per-node 2 t.py", "too many"},
      {"--nnodes 1 --use-logical-cores --logical-cores-for-ccl t.py", "leave one out"},
      {"--latency-mode --throughput-mode t.py", "exclude each other"},
      {"--ninstances 2 --instance-idx 2 t.py", "only 2 instances"},
      {"--memory-allocator best t.py", "tcmalloc or jemalloc"},
      {"--omp-runtime best t.py", "default or intel"},
      {"--ncores-per-instance 57 t.py", "1 times 57 cores"},
      {"--nodes-list 7 t.py", "no NUMA node 7"},
      {"--nproc_per_nod2 2 t.py", "did you mean --nproc"},
      {"--nnodes 1", "what shall be run?"},
      {"cpu", "what shall be run?"},
  };
  for (const auto& [line, reason] : kTable) {
    EXPECT_THAT(run(line), StartsWith("error: ")) << line;
    EXPECT_THAT(run(line), HasSubstr(reason)) << line;
  }
}

TEST(Ipexrun, Xpu) {
  EXPECT_EQ(run("xpu --convert-fp64-to-fp32 t.py"), "-np 1 -- python3 -u t.py");
  EXPECT_THAT(notesOf(translateIpexrun, "xpu t.py"), HasSubstr("nothing is set up for GPUs"));
}

TEST(Ipexrun, WordsForMpi) {
  EXPECT_THAT(run("--nnodes 2 --more_mpi_params='-genv A=b -iface eth0' t.py"),
              HasSubstr("--network-interfaces eth0 --env A=b"));
}

}  // namespace ipexrun_test
}  // namespace farandole::compat
