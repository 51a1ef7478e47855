// The commands of other launchers across hosts, typed as their users type them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "lab/lab.h"
#include "paths.h"

namespace farandole::test {
namespace {

using std::chrono::seconds;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

std::string pathOf(const std::string& name) {
  const std::filesystem::path bin = std::filesystem::path(test::paths::kCommand).parent_path();
  return name == "mpirun" ? bin.parent_path() / "compat" / "bin" / name : bin / name;
}

class LabCompat : public testing::Test {
 protected:
  void SetUp() override {
    LAB_OR_SKIP();
    lab_ = std::make_unique<Lab>(LabOptions{.hosts = 2, .more = {"--docker0"}});
    for (const char* host : {"h0", "h1"}) {
      lab_->writeFile(host, "/root/train.py",
                      "import os, socket\n"
                      "e = os.environ\n"
                      "print(e['RANK'], e['WORLD_SIZE'], e['LOCAL_RANK'], socket.gethostname())\n");
    }
  }

  // In the home folder of h0.
  Outcome typed(const std::string& name, const std::string& rest) const {
    return lab_->shell("h0", "cd && exec " + pathOf(name) + " " + rest);
  }

  void expectNothingLeft() const {
    EXPECT_THAT(lab_->processesAfter("h0", seconds(5)), IsEmpty());
    EXPECT_THAT(lab_->processesAfter("h1", seconds(5)), IsEmpty());
  }

  std::unique_ptr<Lab> lab_;
};

TEST_F(LabCompat, Horovodrun) {
  // The port of the command line, not of ssh's configuration.
  lab_->shell("h0", "rm ~/.ssh/config");
  const Outcome outcome =
      typed("horovodrun", "-np 4 -H localhost:2,10.77.0.11:2 -p 12345 python3 train.py");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(linesOf(outcome.out),
              UnorderedElementsAre("[0]<stdout>:0 4 0 h0", "[1]<stdout>:1 4 1 h0",
                                   "[2]<stdout>:2 4 0 h1", "[3]<stdout>:3 4 1 h1"));
  const Outcome wrong = typed("horovodrun", "-np 4 -H localhost:2,10.77.0.11:2 -p 12346 true");
  EXPECT_NE(wrong.code, 0);
  EXPECT_THAT(wrong.err, HasSubstr("12346"));
  const Outcome failed = typed(
      "horovodrun", "-np 2 -H localhost,10.77.0.11 -p 12345 sh -c 'exit $((FARANDOLE_RANK * 9))'");
  EXPECT_EQ(failed.code, 9) << failed.err;
  expectNothingLeft();
}

TEST_F(LabCompat, Ipexrun) {
  lab_->writeFile("h0", "/root/hostfile", "h0\nh1\n");
  const Outcome outcome =
      typed("ipexrun", "--nnodes=2 --nproc_per_node=2 --hostfile hostfile train.py");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("0 4 0 h0\n"), HasSubstr("1 4 1 h0\n"),
                                 HasSubstr("2 4 0 h1\n"), HasSubstr("3 4 1 h1\n")));
  // What the old spelling of workflow files says; slots of the file do not change it.
  lab_->writeFile("h0", "/root/hostfile", "h0 slots=4\nh1 slots=4\n");
  const Outcome old = typed("ipexrun",
                            "--distributed --nnodes 2 --nproc_per_node 1 --hostfile hostfile "
                            "train.py");
  EXPECT_EQ(old.code, 0) << old.err;
  EXPECT_THAT(old.out, AllOf(HasSubstr("0 2 0 h0\n"), HasSubstr("1 2 0 h1\n")));
  expectNothingLeft();
}

TEST_F(LabCompat, Mpirun) {
  lab_->writeFile("h0", "/root/hosts", "h0 slots=2\nh1 slots=2\n");
  const Outcome outcome = typed(
      "mpirun",
      "-np 4 --hostfile hosts --allow-run-as-root --display-map --tag-output --timestamp-output "
      "-mca btl_tcp_if_exclude lo,docker0 --mca plm_rsh_no_tree_spawn 1 -bind-to none "
      "-map-by slot -x HOROVOD_LOG_LEVEL=debug sh -c 'echo $HOROVOD_LOG_LEVEL on $(hostname)'");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(
      outcome.out,
      AllOf(HasSubstr("   JOB MAP   "), HasSubstr("Data for node: h0\tNum slots: 2"),
            HasSubstr("Data for node: h1\tNum slots: 2"), HasSubstr("Process rank: 3 Bound: N/A")));
  for (const char* line : {"[1,0]<stdout>:debug on h0", "[1,1]<stdout>:debug on h0",
                           "[1,2]<stdout>:debug on h1", "[1,3]<stdout>:debug on h1"}) {
    EXPECT_THAT(outcome.out, HasSubstr(line));
  }
  EXPECT_THAT(outcome.out, ContainsRegex("[0-9][0-9]:[0-9][0-9]:[0-9][0-9] [0-9]+\\[1,3\\]"));

  const Outcome each = typed("mpirun", "--hostfile hosts -npernode 1 hostname");
  EXPECT_EQ(each.code, 0) << each.err;
  EXPECT_THAT(linesOf(each.out), UnorderedElementsAre("h0", "h1"));
  const Outcome turns = typed("mpirun",
                              "-np 3 --hostfile hosts -map-by node sh -c 'echo $FARANDOLE_RANK "
                              "$(hostname)'");
  EXPECT_THAT(linesOf(turns.out), UnorderedElementsAre("0 h0", "1 h1", "2 h0"));
  expectNothingLeft();
}

}  // namespace
}  // namespace farandole::test
