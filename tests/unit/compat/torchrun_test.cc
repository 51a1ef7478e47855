// torchrun's words in those of farandole run.
#include <gmock/gmock.h>

#include "fake_machine.h"

namespace farandole::compat {
namespace torchrun_test {

using testing::HasSubstr;
using testing::StartsWith;

std::string run(const std::string& line, const FakeMachine& machine = {}) {
  return lineOf(translateTorchrun, line, machine);
}

TEST(Torchrun, FlagsBecomeOptions) {
  const std::pair<const char*, const char*> kTable[] = {
      {"train.py --nnodes 9", "-np 1 --no-prefix -- python3 -u train.py --nnodes 9"},
      {"--standalone --nproc_per_node=2 train.py", "-np 2 --no-prefix -- python3 -u train.py"},
      {"--nproc-per-node 2 --nnodes 1:1 --node_rank=0 train.py",
       "-np 2 --no-prefix -- python3 -u train.py"},
      {"--nproc-per-node=cpu t.py", "-np 112 --no-prefix -- python3 -u t.py"},
      {"--nproc-per-node=auto t.py", "-np 112 --no-prefix -- python3 -u t.py"},
      {"-m pkg.train --lr 1", "-np 1 --no-prefix -- python3 -u -m pkg.train --lr 1"},
      {"bin/train x", "-np 1 --no-prefix -- python3 -u bin/train x"},
      {"/usr/bin/python3.11 t.py", "-np 1 --no-prefix -- /usr/bin/python3.11 t.py"},
      {"--no-python ./prog x", "-np 1 --no-prefix -- ./prog x"},
      {"--max-restarts 3 t.py", "-np 1 --max-restarts 3 --no-prefix -- python3 -u t.py"},
      {"--max_restarts=0 t.py", "-np 1 --no-prefix -- python3 -u t.py"},
      {"--rdzv_backend=c10d --rdzv_endpoint=h:29400 --rdzv_id=7 --rdzv-conf a=b t.py",
       "-np 1 --no-prefix -- python3 -u t.py"},
      {"--master_addr=127.0.0.1 --master_port 29501 t.py",
       "-np 1 --master-addr 127.0.0.1 --master-port 29501 --no-prefix -- python3 -u t.py"},
      {"--log-dir d -r 3 t.py", "-np 1 --output-filename d --no-prefix -- python3 -u t.py"},
      {"-t 3 t.py", "-np 1 -- python3 -u t.py"},
      {"--nproc-per-node 4 --local-ranks-filter 0,2 t.py",
       "-np 4 --ranks 0,2 --no-prefix -- python3 -u t.py"},
      {"--numa-binding node t.py", "-np 1 --bind-to numa --no-prefix -- python3 -u t.py"},
  };
  for (const auto& [theirs, ours] : kTable) EXPECT_EQ(run(theirs), ours) << theirs;
}

TEST(Torchrun, SeveralMachinesAreToldWhatToType) {
  EXPECT_EQ(run("--nnodes=2 --nproc_per_node=4 --node_rank=1 t.py"),
            "error: --nnodes 2: all machines are started by one command here; type on one of them: "
            "farandole run -H HOST1:4,HOST2:4 t.py");
  EXPECT_THAT(run("--nnodes 1:4 t.py"), StartsWith("error: --nnodes 1:4: "));
  EXPECT_THAT(run("--node-rank 1 t.py"), StartsWith("error: --node-rank 1: "));
}

TEST(Torchrun, RefusesWithAReason) {
  EXPECT_THAT(run("--nproc-per-node gpu t.py"), HasSubstr("no such device"));
  EXPECT_THAT(run("--nproc-per-node many t.py"), HasSubstr("a whole number from 1 to 4096"));
  EXPECT_THAT(run("--nproc-per-nod3 2 t.py"), HasSubstr("did you mean --nproc-per-node?"));
  EXPECT_THAT(run("--nproc-per-node 2"), HasSubstr("what shall be run?"));
}

TEST(Torchrun, DevicesAreCounted) {
  FakeMachine machine;
  machine.files = {"/dev/nvidia0", "/dev/nvidia1", "/dev/dri/renderD128"};
  EXPECT_THAT(run("--nproc-per-node gpu t.py", machine), StartsWith("-np 2 "));
  EXPECT_THAT(run("--nproc-per-node auto t.py", machine), StartsWith("-np 2 "));
  EXPECT_THAT(run("--nproc-per-node xpu t.py", machine), StartsWith("-np 1 "));
}

TEST(Torchrun, TheEnvironmentGivesFlagsThatTheCommandLineOutranks) {
  FakeMachine pod;
  pod.variables = {{"PET_NPROC_PER_NODE", "3"},
                   {"PET_NNODES", "1"},
                   {"PET_STANDALONE", "1"},
                   {"PET_NO_PYTHON", "0"},
                   {"PYTHON_EXEC", "/opt/python"}};
  EXPECT_EQ(run("t.py", pod), "-np 3 --no-prefix -- /opt/python -u t.py");
  EXPECT_EQ(run("--nproc-per-node 2 t.py", pod), "-np 2 --no-prefix -- /opt/python -u t.py");
  pod.variables["PET_NNODES"] = "2";
  EXPECT_THAT(run("t.py", pod), StartsWith("error: --nnodes 2: "));
}

}  // namespace torchrun_test
}  // namespace farandole::compat
