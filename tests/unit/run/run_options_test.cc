// The texts of options become typed values, or one line that says what to type instead.
#include "run/run_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/App.hpp>
#include <cstdlib>
#include <fstream>

#include "run/run_command.h"
#include "run/run_plan.h"

namespace farandole::run {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

const RunOption* optionNamed(const std::string& name) {
  for (const RunOption& row : runOptions()) {
    if (("," + std::string(row.names) + ",").find("," + name + ",") != std::string::npos) {
      return &row;
    }
  }
  return nullptr;
}

Status read(RunOptions& options, const std::string& name, const std::string& text) {
  const RunOption* const row = optionNamed(name);
  return row == nullptr ? Status::invalid("no row " + name) : row->read(options, text);
}

std::string refusal(const std::string& name, const std::string& text) {
  RunOptions options;
  return read(options, name, text).message();
}

TEST(RunOptionRows, EachHasANameAHelpAndOneMeaning) {
  for (const RunOption& row : runOptions()) {
    EXPECT_EQ(row.names[0], '-');
    EXPECT_NE(std::string(row.help), "");
    EXPECT_NE(row.flag != nullptr, static_cast<bool>(row.read)) << row.names;
    EXPECT_EQ(row.flag == nullptr, row.type != nullptr) << row.names;
  }
}

TEST(RunOptionRows, TextsBecomeValues) {
  RunOptions options;
  const std::pair<const char*, const char*> kTexts[] = {
      {"--num-proc", "4"},        {"--hosts", "alpha:2,user@beta:2222:3"},
      {"--slots-per-host", "2"},  {"--ssh-port", "2222"},
      {"--connect-timeout", "3"}, {"--map-by", "node"},
      {"--bind-to", "numa"},      {"--cpus", "0-1;2,3"},
      {"--threads", "8"},         {"--ranks", "0,2-3"},
      {"--engine", "mpi"},        {"--data-ports", "29600-29700"},
      {"--grace", "0.5"},         {"--start-timeout", "20"},
      {"--malloc", "keep"},       {"--ddp-backend", "farandole"},
      {"--env", "A=1=2"},         {"-x", "B=3"},
      {"--wdir", "work/here"},    {"--max-restarts", "0"}};
  for (const auto& [name, text] : kTexts) {
    const Status status = read(options, name, text);
    EXPECT_TRUE(status.ok()) << status.message();
  }
  EXPECT_EQ(options.ranks, 4);
  ASSERT_TRUE(options.hosts);
  ASSERT_EQ(options.hosts->size(), 2U);
  EXPECT_EQ(options.hosts->at(1), (launch::hosts::HostSpec{"beta", "user", 2222, 3}));
  EXPECT_EQ(options.slotsPerHost, 2);
  EXPECT_EQ(options.ranksPerHost, std::nullopt);
  EXPECT_EQ(options.sshPort, 2222);
  EXPECT_EQ(options.connectTimeout, std::chrono::seconds(3));
  EXPECT_EQ(options.mapBy, launch::hosts::MapBy::kNode);
  EXPECT_EQ(options.bindTo, launch::plan::BindTo::kNuma);
  EXPECT_THAT(options.cpus, ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3)));
  EXPECT_EQ(options.threads, 8);
  EXPECT_THAT(options.shownRanks, ElementsAre(0, 2, 3));
  EXPECT_EQ(options.library.engine, EngineChoice::kMpi);
  EXPECT_EQ(options.library.lastPort, 29700);
  EXPECT_THAT(options.libraryVariables, ElementsAre(Pair("FARANDOLE_ENGINE", "mpi"),
                                                    Pair("FARANDOLE_DATA_PORTS", "29600-29700")));
  EXPECT_EQ(options.grace, std::chrono::milliseconds(500));
  EXPECT_EQ(options.startTimeout, Duration(std::chrono::seconds(20)));
  EXPECT_EQ(options.malloc, MallocMode::kKeep);
  EXPECT_EQ(options.ddpBackend, DdpBackend::kFarandole);
  EXPECT_THAT(options.environment, ElementsAre(Pair("A", "1=2")));
  EXPECT_THAT(options.exported, ElementsAre(Pair("B", "3")));
  EXPECT_EQ(options.folder, "work/here");
}

TEST(RunOptionRows, MistakesNameTheOptionAndSayWhatToType) {
  EXPECT_EQ(refusal("--ssh-port", "ssh"), "-p takes a number from 1 to 65535, not 'ssh'");
  EXPECT_EQ(refusal("--slots-per-host", "2000"),
            "--slots-per-host takes a number from 1 to 1024, not '2000'");
  EXPECT_EQ(refusal("--threads", "0"), "--threads takes a number from 1 to 65536, not '0'");
  EXPECT_EQ(refusal("--map-by", "core"), "--map-by takes slot or node, not 'core'");
  EXPECT_EQ(refusal("--bind-to", "socket"), "--bind-to takes core, numa or none, not 'socket'");
  EXPECT_EQ(refusal("--malloc", "kept"), "--malloc takes keep or default, not 'kept'");
  EXPECT_EQ(refusal("--stall-warning", "soon"),
            "--stall-warning takes a number of seconds, such as 10, not 'soon'");
  EXPECT_EQ(refusal("--ranks", "first"), "--ranks takes ranks such as 0,3 or 0-3, not 'first'");
  EXPECT_EQ(refusal("--lanes", "99"), "--lanes 99: expected a whole number from 1 to 16");
  EXPECT_EQ(refusal("--wire", "fp8"), "--wire fp8: expected native, fp16 or bf16");
  EXPECT_THAT(refusal("--env", "A"), HasSubstr("--env takes NAME=value, not 'A' (-x A passes"));
  EXPECT_THAT(refusal("--env", "=1"), HasSubstr("--env takes NAME=value"));
  EXPECT_THAT(refusal("-x", "NO_SUCH_VARIABLE"), HasSubstr("type -x NO_SUCH_VARIABLE=value"));
  EXPECT_THAT(refusal("--cpus", "0;;1"), HasSubstr("the set of local rank 1 is empty"));
  EXPECT_THAT(refusal("--hosts", "-a"), HasSubstr("begins with '-'"));
}

TEST(RunPlan, PassesOnWhatTheRanksRead) {
  RunOptions options;
  options.ranks = 2;
  options.command = {"true"};
  for (const auto& [name, text] : {std::pair{"--stall-warning", "0.25"},
                                   {"--start-timeout", "1e1"},
                                   {"--lanes", "3"},
                                   {"--env", "FARANDOLE_LANES=4"}}) {
    ASSERT_TRUE(read(options, name, text).ok());
  }
  auto run = planRun(options);
  ASSERT_TRUE(run.ok()) << run.status().message();
  EXPECT_THAT(run->job.settings,
              ElementsAre(Pair("FARANDOLE_START_TIMEOUT", "10"),
                          Pair("FARANDOLE_STALL_WARNING_SECONDS", "0.25"),
                          Pair("FARANDOLE_LANES", "3"), Pair("FARANDOLE_LANES", "4")));
  EXPECT_EQ(run->connecting.startLimit, std::chrono::seconds(10));
}

TEST(RunPlan, RefusesRanksAndSlotsThatCannotBe) {
  RunOptions options;
  options.ranks = 2;
  options.command = {"true"};
  options.shownRanks = {0, 1, 4};
  EXPECT_EQ(planRun(options).status().message(),
            "--ranks 0-1,4: this job has no rank 4, only 0 to 1");
  options.shownRanks.clear();
  // More than a host has slots is possible only on this machine alone.
  options.ranks.reset();
  options.ranksPerHost = launch::hosts::kMostSlots + 1;
  EXPECT_TRUE(planRun(options).ok());
  options.hosts = {{"localhost", "", 0, 1}};
  EXPECT_EQ(planRun(options).status().message(),
            "--ranks-per-host takes a number from 1 to 1024, not '1025'");
}

class Words : public testing::Test {
 protected:
  std::vector<std::string> prepared(const std::vector<std::string>& words) {
    auto options =
        RunCommand(*app_.add_subcommand("run" + std::to_string(++commands_))).prepare(words);
    return options.ok() ? *options : std::vector<std::string>{options.status().message()};
  }

 private:
  CLI::App app_;
  int commands_ = 0;
};

TEST_F(Words, TheConfigurationFileMayBeNamedInAnyWay) {
  const std::string path = testing::TempDir() + "run_options_test.yaml";
  std::ofstream(path) << "num-proc: 3\nhosts:\nenv: [A=1, B=2]\nquiet: yes\n";
  const auto typed = prepared({"--config-file", path, "true"});
  EXPECT_THAT(typed, ElementsAre("--num-proc=3", "--env=A=1", "--env=B=2", "--quiet",
                                 "--config-file=" + path));
  EXPECT_EQ(prepared({"--config-file=" + path, "true"}), typed);
  ::setenv("FARANDOLE_RUN_CONFIG_FILE", path.c_str(), 1);
  ::setenv("FARANDOLE_RUN_HOSTS", "", 1);
  EXPECT_THAT(prepared({"true"}), ElementsAre("--config-file=" + path, "--num-proc=3", "--env=A=1",
                                              "--env=B=2", "--quiet"));
  ::unsetenv("FARANDOLE_RUN_CONFIG_FILE");
  ::unsetenv("FARANDOLE_RUN_HOSTS");
}

}  // namespace
}  // namespace farandole::run
