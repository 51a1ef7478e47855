// The identity that ranks are given, and the command that they run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>

#include "multiproc/launch/command.h"

namespace farandole::test {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

// By rank, then by name.
std::map<int, std::map<std::string, std::string>> environments(const std::string& out) {
  std::map<int, std::map<std::string, std::string>> all;
  for (const std::string& line : linesOf(out)) {
    const auto colon = line.find(':');
    const auto equals = line.find('=');
    if (colon == std::string::npos || equals == std::string::npos || equals < colon) continue;
    all[std::atoi(line.c_str() + 1)][line.substr(colon + 1, equals - colon - 1)] =
        line.substr(equals + 1);
  }
  return all;
}

// The kernel counts shared memory to nobody, so it might take the launcher.
TEST(LaunchEnvironment, RanksGoBeforeTheLauncherWhenMemoryIsShort) {
  int own = 0;
  std::ifstream("/proc/self/oom_score_adj") >> own;
  const auto outcome = runCommand({"run", "-q", "-np", "1", "sh", "-c",
                                   "cat /proc/self/oom_score_adj /proc/$PPID/oom_score_adj"});
  const auto lines = linesOf(outcome.out);
  ASSERT_EQ(lines.size(), 2U) << outcome.out << outcome.err;
  EXPECT_THAT(lines[0], ::testing::EndsWith(std::to_string(std::min(own + 100, 1000))));
  EXPECT_THAT(lines[1], ::testing::EndsWith(std::to_string(own)));
}

TEST(LaunchEnvironment, AllFamilies) {
  auto all = environments(runCommand({"run", "-q", "-np", "3", "env"}).out);
  ASSERT_EQ(all.size(), 3U);
  for (auto& [rank, env] : all) {
    const std::string r = std::to_string(rank);
    const std::vector<std::pair<const char*, std::string>> expected{
        {"FARANDOLE_RANK", r},
        {"FARANDOLE_SIZE", "3"},
        {"FARANDOLE_LOCAL_RANK", r},
        {"FARANDOLE_LOCAL_SIZE", "3"},
        {"FARANDOLE_CROSS_RANK", "0"},
        {"FARANDOLE_CROSS_SIZE", "1"},
        {"HOROVOD_RANK", r},
        {"HOROVOD_SIZE", "3"},
        {"HOROVOD_LOCAL_RANK", r},
        {"HOROVOD_LOCAL_SIZE", "3"},
        {"HOROVOD_CROSS_RANK", "0"},
        {"HOROVOD_CROSS_SIZE", "1"},
        {"HOROVOD_HOSTNAME", env["FARANDOLE_HOST"]},
        {"HOROVOD_CONTROLLER", "gloo"},
        {"HOROVOD_CPU_OPERATIONS", "gloo"},
        {"RANK", r},
        {"WORLD_SIZE", "3"},
        {"LOCAL_RANK", r},
        {"LOCAL_WORLD_SIZE", "3"},
        {"GROUP_RANK", "0"},
        {"ROLE_RANK", r},
        {"ROLE_WORLD_SIZE", "3"},
        {"MASTER_ADDR", "127.0.0.1"},
        {"MASTER_PORT", all[0]["MASTER_PORT"]},
        {"TORCHELASTIC_RUN_ID", all[0]["FARANDOLE_JOB"]},
        {"TORCHELASTIC_RESTART_COUNT", "0"},
        {"TORCHELASTIC_MAX_RESTARTS", "0"},
        {"OMPI_COMM_WORLD_RANK", r},
        {"OMPI_COMM_WORLD_SIZE", "3"},
        {"OMPI_COMM_WORLD_LOCAL_RANK", r},
        {"OMPI_COMM_WORLD_LOCAL_SIZE", "3"},
        {"PMI_RANK", r},
        {"PMI_SIZE", "3"},
        {"MPI_LOCALRANKID", r},
        {"MPI_LOCALNRANKS", "3"},
        {"PYTHONUNBUFFERED", "1"},
        {"FARANDOLE_JOB", all[0]["FARANDOLE_JOB"]},
        {"FARANDOLE_AGENT", all[0]["FARANDOLE_AGENT"]},
        {"FARANDOLE_SECRET", all[0]["FARANDOLE_SECRET"]}};
    for (const auto& [name, value] : expected) EXPECT_EQ(env[name], value) << name;
    EXPECT_THAT(env["FARANDOLE_SECRET"], MatchesRegex("[0-9a-f]+"));
    EXPECT_EQ(env["FARANDOLE_SECRET"].size(), 64U);
    EXPECT_THAT(env["FARANDOLE_AGENT"], MatchesRegex("@.+"));
    EXPECT_GT(std::atoi(env["MASTER_PORT"].c_str()), 0);
    EXPECT_GE(std::atoi(env["OMP_NUM_THREADS"].c_str()), 1);
  }
}

TEST(LaunchEnvironment, JobsDiffer) {
  const std::vector<std::string> words{"run", "-q", "env"};
  auto first = environments(runCommand(words).out)[0];
  auto second = environments(runCommand(words).out)[0];
  EXPECT_NE(first["FARANDOLE_JOB"], second["FARANDOLE_JOB"]);
  EXPECT_NE(first["FARANDOLE_SECRET"], second["FARANDOLE_SECRET"]);
}

TEST(LaunchEnvironment, FreedMemoryIsKeptOnRequest) {
  auto env = environments(runCommand({"run", "-q", "env"}).out)[0];
  EXPECT_FALSE(env.contains("MALLOC_TRIM_THRESHOLD_"));
  Command::Options options;
  options.env = {"MALLOC_TOP_PAD_=4096"};
  Command keeping({"run", "-q", "--malloc", "keep", "env"}, options);
  env = environments(keeping.finish().out)[0];
  EXPECT_EQ(env["MALLOC_TRIM_THRESHOLD_"], "4294967296");
  EXPECT_EQ(env["MALLOC_MMAP_THRESHOLD_"], "1073741824");
  EXPECT_EQ(env["MALLOC_TOP_PAD_"], "4096");
  const auto wrong = runCommand({"run", "--malloc", "kept", "env"});
  EXPECT_NE(wrong.code, 0);
  EXPECT_THAT(wrong.err, ::testing::HasSubstr("--malloc takes keep or default, not 'kept'"));
}

TEST(LaunchEnvironment, UserSettingsStayAndForeignIdentityGoes) {
  Command::Options options;
  options.env = {"OMP_NUM_THREADS=7",
                 "HOROVOD_FUSION_THRESHOLD=5",
                 "PMI_FD=9",
                 "PMIX_NAMESPACE=x",
                 "PMIX_MCA_verbose=1",
                 "RANK=17",
                 "OMPI_COMM_WORLD_X=1",
                 "MINE=a=b"};
  Command command({"run", "-q", "-np", "2", "env"}, options);
  for (auto& [rank, env] : environments(command.finish().out)) {
    EXPECT_EQ(env["OMP_NUM_THREADS"], "7");
    EXPECT_EQ(env["HOROVOD_FUSION_THRESHOLD"], "5");
    EXPECT_EQ(env["PMIX_MCA_verbose"], "1");
    EXPECT_EQ(env["MINE"], "a=b");
    EXPECT_EQ(env["RANK"], std::to_string(rank));
    EXPECT_FALSE(env.contains("PMI_FD"));
    EXPECT_FALSE(env.contains("PMIX_NAMESPACE"));
    EXPECT_FALSE(env.contains("OMPI_COMM_WORLD_X"));
  }
}

TEST(LaunchEnvironment, OptionsArePassedOn) {
  auto env = environments(runCommand({"run", "-q", "--start-timeout", "12", "--timeline", "t.json",
                                      "--stall-warning=2.5", "--stall-shutdown", "30", "env"})
                              .out)[0];
  EXPECT_EQ(env["FARANDOLE_START_TIMEOUT"], "12");
  EXPECT_EQ(env["FARANDOLE_TIMELINE"], "t.json");
  EXPECT_EQ(env["FARANDOLE_STALL_WARNING_SECONDS"], "2.5");
  EXPECT_EQ(env["FARANDOLE_STALL_SHUTDOWN_SECONDS"], "30");
}

TEST(LaunchEnvironment, SecretIsOnlyInTheRanksEnvironment) {
  Command command(shellJob(2,
                           "echo $FARANDOLE_SECRET; cat /proc/$PPID/environ /proc/$PPID/cmdline "
                           "| tr '\\0' '\\n' >&2",
                           {"-q", "--verbose"}));
  const Outcome outcome = command.finish();
  const auto lines = linesOf(outcome.out);
  ASSERT_EQ(lines.size(), 2U);
  const std::string secret = lines[0].substr(lines[0].find(':') + 1);
  ASSERT_EQ(secret.size(), 64U);
  EXPECT_THAT(outcome.err, HasSubstr("PATH="));
  EXPECT_THAT(outcome.err, Not(HasSubstr(secret)));
}

TEST(LaunchEnvironment, DryRunShowsThePlanAndStartsNothing) {
  TemporaryFolder folder;
  const std::string file = folder.path() + "/started";
  const Outcome outcome = runCommand({"run", "-np", "2", "--dry-run", "sh", "-c", "touch " + file});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.out, HasSubstr("command: sh -c 'touch " + file + "'\n"));
  EXPECT_THAT(outcome.out, HasSubstr("rank 1 on "));
  EXPECT_THAT(outcome.out, HasSubstr("  FARANDOLE_RANK=1\n"));
  EXPECT_THAT(outcome.out, HasSubstr("  FARANDOLE_SECRET=(hidden)\n"));
  EXPECT_FALSE(std::ifstream(file).good());
}

TEST(LaunchCommand, PythonScriptByItsName) {
  TemporaryFolder folder;
  folder.write("train.py", "import sys; print('args', sys.argv[1:], flush=False)\n");
  folder.write("tool.py", "#!/bin/sh\necho by its own interpreter\n", true);
  Command::Options options;
  options.folder = folder.path();
  EXPECT_EQ(Command({"run", "train.py", "--lr", "-np", "--", "x"}, options).finish().out,
            "[0]<stdout>:args ['--lr', '-np', '--', 'x']\n");
  EXPECT_EQ(Command({"run", "./train.py"}, options).finish().out, "[0]<stdout>:args []\n");
  EXPECT_EQ(Command({"run", "./tool.py"}, options).finish().out,
            "[0]<stdout>:by its own interpreter\n");
}

TEST(LaunchCommand, ArgumentsArriveAsTheyAre) {
  const Outcome outcome = runCommand(
      {"run", "-n1", "--", "printf", "%s|", "", "a b", "$HOME", "*", "'", "\\", "--", "-np"});
  EXPECT_EQ(outcome.out, "[0]<stdout>:|a b|$HOME|*|'|\\|--|-np|\n");
}

}  // namespace
}  // namespace farandole::test
