// Typed words → exit code and one clear line.
#include "init/init_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/App.hpp>
#include <algorithm>

#include "unit/init/scratch.h"

namespace farandole::init {
namespace {

using testing::HasSubstr;

struct Outcome {
  int code;
  std::string output;
  std::string errors;
};

Outcome type(std::vector<std::string> words) {
  CLI::App app("test", "farandole");
  InitCommand command(*app.add_subcommand("init"));
  words.insert(words.begin(), "init");
  std::reverse(words.begin(), words.end());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  int code = -1;
  try {
    app.parse(std::move(words));
    code = command.execute();
  } catch (const CLI::ParseError&) {
  }
  return {code, testing::internal::GetCapturedStdout(), testing::internal::GetCapturedStderr()};
}

TEST(InitCommand, MistakesAreOneLineAndWriteNothing) {
  Scratch scratch;
  const std::string folder = scratch / "c";
  const struct {
    std::vector<std::string> words;
    const char* said;
  } kCases[] = {
      {{}, "which workers?"},
      {{"--workers=-x"}, "begins with '-'"},
      {{"--workers", "a,a"}, "two workers are called 'a'"},
      {{"--workers", "a", "--port", "65536"}, "--port must be a number from 1 to 65535"},
      {{"--workers", "a", "--uid", "dev"}, "--uid must be a number"},
      {{"--workers", "a", "--gid", "-1"}, "--gid must be a number"},
      {{"--workers", "a", "--user", "a b"}, "--user must be"},
      {{"--workers", "a", "--gpu", "amd"}, "--gpu must be intel, nvidia or none"},
      {{"--workers", "a", "--gpu", "nvidia"}, "needs --image"},
      {{"--workers", "a", "--engine", "lxc"}, "--engine must be docker or podman"},
      {{"--workers", "a", "--image", "a b"}, "--image must be"},
      {{"--workers", "a", "--iface", "eth0;"}, "--iface must be"},
      {{"--workers", "a", "--shm-size", "big"}, "--shm-size must be"},
      {{"--workers", "a", "--data", "data"}, "--data must be an absolute path"},
      {{"--workers", "a", "--key-type", "dsa"}, "DSA keys are weak"},
      {{"--workers", "a", "--key-type", "rsa", "--key", "x"}, "exclude each other"},
      {{"--workers", "a", "--key", "/absent"}, "there is no /absent"},
      {{"--workers", "a", "--dry-run", "--push"}, "leave --dry-run out"},
      {{"--verify"}, "hostfile to verify"},
  };
  for (auto words : kCases) {
    words.words.insert(words.words.end(), {"--dir", folder});
    const Outcome outcome = type(words.words);
    EXPECT_EQ(outcome.code, 2) << words.said;
    EXPECT_THAT(outcome.errors, HasSubstr(words.said));
    EXPECT_THAT(outcome.errors, testing::StartsWith("farandole init: "));
    EXPECT_EQ(std::count(outcome.errors.begin(), outcome.errors.end(), '\n'), 1) << outcome.errors;
    EXPECT_FALSE(std::filesystem::exists(folder)) << words.said;
  }
  EXPECT_THAT(type({"--workers", "a", "--dir", folder + ",x"}).errors, HasSubstr("--dir"));
}

TEST(InitCommand, DryRunListsFilesWithTheirModes) {
  Scratch scratch;
  const Outcome outcome = type({"--workers", "a,b", "--dry-run", "--dir", scratch / "c"});
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, HasSubstr("would be created 0600 ssh_launcher/id_ed25519\n"));
  EXPECT_THAT(outcome.output, HasSubstr("would be created 0700 ssh_worker/b/\n"));
  EXPECT_THAT(outcome.output, HasSubstr("would be created 0755 run-worker.sh\n"));
  EXPECT_FALSE(std::filesystem::exists(scratch / "c"));
}

TEST(InitCommand, RootHasItsOwnHome) {
  Scratch scratch;
  const Outcome outcome =
      type({"--workers", "a", "--user", "root", "--dry-run", "--dir", scratch / "c"});
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_EQ(defaultSshFolder("root"), "/root/.ssh");
  EXPECT_EQ(defaultSshFolder("dev"), "/home/dev/.ssh");
}

}  // namespace
}  // namespace farandole::init
