// The commands of other launchers, by their names in bin and compat/bin, with real processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "multiproc/launch/command.h"
#include "paths.h"

namespace farandole::test {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;
using testing::UnorderedElementsAre;
using Words = std::vector<std::string>;

std::string pathOf(const std::string& name) {
  const std::filesystem::path bin = std::filesystem::path(test::paths::kCommand).parent_path();
  const bool beside = name == "horovodrun" || name == "ipexrun";
  return beside ? bin / name : bin.parent_path() / "compat" / "bin" / name;
}

Outcome runOld(const std::string& name, const Words& words, Command::Options options = {}) {
  options.program = pathOf(name);
  return Command(words, options).finish();
}

// A folder with a script that prints who it is and ends as it is told.
class Compat : public testing::Test {
 protected:
  Compat() {
    folder_.write("script.py",
                  "import os, sys\n"
                  "names = ['RANK', 'WORLD_SIZE', 'LOCAL_RANK', 'LOCAL_WORLD_SIZE']\n"
                  "print('who', *[os.environ.get(name) for name in names], *sys.argv[1:])\n");
    options_.folder = folder_.path();
  }

  Outcome run(const std::string& name, const Words& words) const {
    return runOld(name, words, options_);
  }

  TemporaryFolder folder_;
  Command::Options options_;
};

TEST_F(Compat, HorovodrunStartsAScriptByItsName) {
  const Outcome outcome = run("horovodrun", {"-np", "2", "script.py", "--epochs", "3"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(linesOf(outcome.out), UnorderedElementsAre("[0]<stdout>:who 0 2 0 2 --epochs 3",
                                                         "[1]<stdout>:who 1 2 1 2 --epochs 3"));
}

TEST_F(Compat, HorovodrunKnowsTheSpellingsOfDocuments) {
  for (const Words& words : {Words{"-n", "2", "-H", "localhost:2"}, Words{"--num-proc=2"},
                             Words{"-np", "2", "-hosts", "localhost:2"},
                             Words{"-np", "2", "--gloo", "--host", "localhost:2"}}) {
    Words all = words;
    all.insert(all.end(), {"python3", "script.py"});
    const Outcome outcome = run("horovodrun", all);
    EXPECT_EQ(outcome.code, 0) << testing::PrintToString(words) << outcome.err;
    EXPECT_EQ(countOf(outcome.out, "<stdout>:who "), 2) << outcome.out;
  }
}

TEST_F(Compat, HorovodrunTellsTheTranslationAndWhatThereIs) {
  const Outcome outcome = run("horovodrun", {"--verbose", "-np", "1", "--mpi", "true"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("farandole: note: this is: farandole run"),
                                 HasSubstr("no MPI is needed")));
  const Outcome build = run("horovodrun", {"--check-build"});
  EXPECT_EQ(build.code, 0);
  EXPECT_THAT(build.out, HasSubstr("Available Controllers"));
}

TEST_F(Compat, ExitCodesAreTheRanks) {
  for (const char* name : {"horovodrun", "mpirun", "mpiexec"}) {
    const Outcome outcome = run(name, {"-np", "2", "sh", "-c", "exit $((FARANDOLE_RANK * 7))"});
    EXPECT_EQ(outcome.code, 7) << name << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("rank 1")) << name;
  }
  folder_.write("fails.py", "import sys\nsys.exit(5)\n");
  EXPECT_EQ(run("torchrun", {"--nproc_per_node=2", "fails.py"}).code, 5);
  EXPECT_EQ(run("ipexrun", {"--nnodes=1", "--nproc_per_node=2", "fails.py"}).code, 5);
}

TEST_F(Compat, MpirunShowsLinesAsTheyAre) {
  const Outcome plain = run("mpirun", {"-np", "2", "--allow-run-as-root", "echo", "bare"});
  EXPECT_EQ(plain.code, 0) << plain.err;
  EXPECT_EQ(plain.out, "bare\nbare\n");
  const Outcome ranked = run("mpiexec", {"-l", "-n", "2", "echo", "x"});
  EXPECT_THAT(linesOf(ranked.out), UnorderedElementsAre("[0]<stdout>:x", "[1]<stdout>:x"));
}

TEST_F(Compat, MpirunTagsAndStamps) {
  const Outcome tagged =
      run("mpirun", {"-np", "2", "--tag-output", "sh", "-c", "echo out; echo err >&2"});
  EXPECT_EQ(tagged.code, 0) << tagged.err;
  EXPECT_THAT(linesOf(tagged.out), UnorderedElementsAre("[1,0]<stdout>:out", "[1,1]<stdout>:out"));
  EXPECT_THAT(tagged.err, AllOf(HasSubstr("[1,0]<stderr>:err"), HasSubstr("[1,1]<stderr>:err")));
  const Outcome stamped =
      run("mpirun", {"-np", "1", "--tag-output", "--timestamp-output", "echo", "now"});
  EXPECT_THAT(stamped.out, MatchesRegex("[A-Z][a-z][a-z] [A-Z][a-z][a-z] [ 0-9][0-9] "
                                        "[0-9:]+ [0-9]+\\[1,0\\]<stdout>:now\n"));
}

TEST_F(Compat, MpirunShowsTheMap) {
  const Outcome outcome = run("mpirun", {"-np", "2", "--display-map", "true"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out,
              AllOf(HasSubstr("========================   JOB MAP   ========================"),
                    HasSubstr("Num procs: 2"), HasSubstr("Process rank: 0 Bound: N/A"),
                    HasSubstr("Process rank: 1 Bound: N/A")));
  const Outcome only = run("mpirun", {"-np", "2", "--do-not-launch", "sh", "-c", "echo started"});
  EXPECT_EQ(only.code, 0);
  EXPECT_EQ(countOf(only.out, "\nstarted"), 0) << only.out;
}

TEST_F(Compat, MpirunPassesVariables) {
  options_.env = {"MINE=of this shell"};
  const Outcome outcome = run("mpirun", {"-np", "1", "-x", "MINE", "-x", "OTHER=set", "-genv",
                                         "THIRD", "3", "sh", "-c", "echo $MINE $OTHER $THIRD"});
  EXPECT_EQ(outcome.out, "of this shell set 3\n") << outcome.err;
}

TEST_F(Compat, RanksPerHostOutrankSlots) {
  folder_.write("hosts", "localhost slots=4\n");
  const std::string count = "echo $FARANDOLE_LOCAL_SIZE";
  EXPECT_EQ(run("mpirun", {"--hostfile", "hosts", "-npernode", "2", "sh", "-c", count}).out,
            "2\n2\n");
  EXPECT_EQ(run("mpiexec", {"-f", "hosts", "-ppn", "1", "sh", "-c", count}).out, "1\n");
  EXPECT_EQ(run("mpirun", {"--hostfile", "hosts", "--map-by", "ppr:3:node", "sh", "-c", count}).out,
            "3\n3\n3\n");
  // For horovodrun it is what hosts have that say nothing.
  EXPECT_EQ(countOf(run("horovodrun", {"-np", "4", "--hostfile", "hosts", "--slots-per-host", "1",
                                       "sh", "-c", count})
                        .out,
                    ":4\n"),
            4);
  const Outcome impossible = run("mpirun", {"-np", "3", "-npernode", "1", "true"});
  EXPECT_EQ(impossible.code, 2);
  EXPECT_THAT(impossible.err, HasSubstr("name hosts with -H"));
  EXPECT_EQ(linesOf(run("mpirun", {"-npernode", "2", "echo", "x"}).out).size(), 2U);
}

TEST_F(Compat, IpexrunRanksWorkTogether) {
  for (const Words& words :
       {Words{"--distributed", "--nproc_per_node=2", "--nnodes=1"},
        Words{"cpu", "--nnodes", "1", "--nprocs-per-node", "2"},
        Words{"--distributed", "--nproc_per_node=2", "--ccl_worker_count", "1"}}) {
    Words all = words;
    all.insert(all.end(), {"script.py", "-x", "1"});
    const Outcome outcome = run("ipexrun", all);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.out,
                AllOf(HasSubstr("who 0 2 0 2 -x 1\n"), HasSubstr("who 1 2 1 2 -x 1\n")))
        << testing::PrintToString(words);
  }
}

TEST_F(Compat, IpexrunInstancesDoNot) {
  const Outcome outcome = run("ipexrun", {"--ninstances", "2", "script.py"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(countOf(outcome.out, "who None None None None\n"), 2) << outcome.out;
  EXPECT_THAT(outcome.err, HasSubstr("do not work together"));
}

TEST_F(Compat, TorchrunSetsItsVariables) {
  folder_.write("environment.py",
                "import os\n"
                "names = ['RANK', 'LOCAL_RANK', 'WORLD_SIZE', 'GROUP_RANK', 'MASTER_ADDR',\n"
                "         'TORCHELASTIC_RESTART_COUNT', 'TORCHELASTIC_MAX_RESTARTS',\n"
                "         'TORCHELASTIC_RUN_ID']\n"
                "print('missing', [name for name in names if name not in os.environ])\n"
                "print('port', int(os.environ['MASTER_PORT']))\n");
  const Outcome outcome =
      run("torchrun", {"--standalone", "--nproc-per-node", "2", "environment.py"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(countOf(outcome.out, "missing []\n"), 2) << outcome.out;
  EXPECT_THAT(outcome.out, ContainsRegex("port [0-9]+\n"));
}

TEST_F(Compat, TorchrunStartsAgain) {
  folder_.write("again.py",
                "import os, sys\n"
                "count = int(os.environ['TORCHELASTIC_RESTART_COUNT'])\n"
                "print('try', count, flush=True)\n"
                "sys.exit(3 if count == 0 and os.environ['RANK'] == '1' else 0)\n");
  const Outcome once = run("torchrun", {"--nproc_per_node=2", "--max-restarts", "1", "again.py"});
  EXPECT_EQ(once.code, 0) << once.err;
  EXPECT_EQ(countOf(once.out, "try 1\n"), 2) << once.out;
  EXPECT_THAT(once.err, HasSubstr("starting the job again (1 of 1)"));
  EXPECT_THAT(once.err, Not(HasSubstr("left behind")));
  const Outcome never = run("torchrun", {"--nproc_per_node=2", "again.py"});
  EXPECT_EQ(never.code, 3);
  EXPECT_THAT(never.out, Not(HasSubstr("try 1\n")));
}

TEST_F(Compat, TorchrunRunsModules) {
  folder_.write("module.py", "import sys\nprint('module', *sys.argv[1:])\n");
  const Outcome outcome = run("torchrun", {"--nproc_per_node", "1", "-m", "module", "--lr", "1"});
  EXPECT_EQ(outcome.out, "module --lr 1\n") << outcome.err;
}

TEST_F(Compat, HelpIsTheTableOfFlags) {
  for (const char* name : {"horovodrun", "ipexrun", "torchrun", "mpirun", "mpiexec"}) {
    const Outcome outcome = run(name, {"--help"});
    EXPECT_EQ(outcome.code, 0) << name;
    EXPECT_EQ(outcome.err, "") << name;
    EXPECT_THAT(outcome.out, HasSubstr("--verbose")) << name;
    EXPECT_THAT(run(name, {"--version"}).out, HasSubstr(FARANDOLE_VERSION)) << name;
  }
}

TEST_F(Compat, RefusalsAreOneLine) {
  const struct {
    const char* name;
    Words words;
    const char* says;
  } kCases[] = {
      {"horovodrun", {"-np", "2", "--jsrun", "true"}, "ssh, not jsrun"},
      {"horovodrun", {"-np", "2", "--num-prc", "3", "true"}, "--num-proc"},
      {"horovodrun", {"-np", "2", "--min-np", "1", "true"}, "cannot change during a job"},
      {"horovodrun", {"-np", "2"}, "what shall be run"},
      {"horovodrun", {"-np", "two", "true"}, "two"},
      {"ipexrun", {"--nnodes=0.5", "script.py"}, "--nnodes"},
      {"ipexrun", {"--no-such-flag", "script.py"}, "--no-such-flag"},
      {"torchrun",
       {"--nnodes=2", "--node_rank=1", "script.py"},
       "farandole run -H HOST1:1,HOST2:1"},
      {"torchrun", {"--nproc_per_node=gpus", "script.py"}, "--nproc-per-node"},
      {"mpirun", {"-np", "1", "true", ":", "-np", "1", "true"}, "several programs"},
      {"mpirun", {"-np", "2", "--rankfile", "f", "true"}, "--map-by"},
      {"mpiexec", {"-np", "2", "--tag-outputs", "true"}, "--tag-output"},
  };
  for (const auto& [name, words, says] : kCases) {
    const Outcome outcome = run(name, words);
    EXPECT_EQ(outcome.code, 2) << name << testing::PrintToString(words);
    EXPECT_THAT(outcome.err, HasSubstr(says));
    EXPECT_EQ(linesOf(outcome.err).size(), 1U) << outcome.err;
    EXPECT_EQ(outcome.out, "");
  }
}

}  // namespace
}  // namespace farandole::test
