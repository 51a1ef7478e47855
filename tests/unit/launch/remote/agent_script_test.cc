// The program that becomes the agent on another host.
#include "launch/remote/agent_script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "launch/ssh/ssh_command.h"
#include "process/bounded_command.h"
#include "unit/launch/hosts/temp_folder.h"

namespace farandole::launch::remote {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr std::size_t kMiB = std::size_t{1} << 20;

Tree tree(const std::string& command = "/no/such/farandole") {
  Tree tree;
  tree.id = "0123abcd";
  tree.command = command;
  return tree;
}

process::CommandEnd runScript(const std::string& script, const std::string& cache) {
  return process::runBounded(
      {"env", "-i", "PATH=/usr/bin:/bin", "XDG_CACHE_HOME=" + cache, "/bin/sh", "-c", script},
      Deadline::after(std::chrono::seconds(20)));
}

TEST(AgentScript, EveryShellReadsItAlikeAndNoPlaceholderIsLeft) {
  for (const PushMode push : {PushMode::kIfMissing, PushMode::kAlways, PushMode::kNever}) {
    const std::string script = agentScript(tree(), push, 3 * kMiB + 17);
    EXPECT_TRUE(launch::ssh::remoteShell(script).ok()) << script;
    EXPECT_EQ(script.find("@"), script.find("@\""))  // $@ is all there is
        << script;
    const auto parsed = process::runBounded({"/bin/sh", "-n", "-c", script},
                                            Deadline::after(std::chrono::seconds(20)));
    EXPECT_EQ(parsed.exitCode, 0) << parsed.err;
  }
}

TEST(AgentScript, SaysThatThereIsNone) {
  const launch::hosts::TempFolder cache;
  const auto end = runScript(agentScript(tree(), PushMode::kNever, 0), cache.path());
  EXPECT_EQ(end.exitCode, 3);
  EXPECT_EQ(end.out, "FARANDOLE-MISSING nothing\n");
}

TEST(AgentScript, BecomesTheAgentOfTheTreeWithThisId) {
  const launch::hosts::TempFolder cache;
  std::filesystem::permissions(
      cache.write("farandole/0123abcd/bin/farandole", "#!/bin/sh\necho \"$@\"\n"),
      std::filesystem::perms::owner_all);
  const auto end = runScript(agentScript(tree(), PushMode::kNever, 0), cache.path());
  EXPECT_EQ(end.out, "agent\n") << end.err;
}

TEST(AgentScript, AsksForATreeAndUnpacksNothingThatDidNotCome) {
  const launch::hosts::TempFolder cache;
  const auto end = runScript(agentScript(tree(), PushMode::kAlways, 17), cache.path());
  EXPECT_EQ(end.exitCode, 4);
  EXPECT_THAT(end.out, StartsWith("FARANDOLE-NEED "));
  EXPECT_THAT(end.out, HasSubstr("\nFARANDOLE-PUSH-FAILED " + cache.path() + "/farandole: "));
  EXPECT_TRUE(std::filesystem::is_empty(cache.path() + "/farandole"));
}

// A path with characters that the program cannot carry is not looked at.
TEST(AgentScript, LeavesOutAPathThatAShellWouldExpand) {
  const std::string script = agentScript(tree("/opt/$(reboot)/farandole"), PushMode::kNever, 0);
  EXPECT_EQ(script.find("reboot"), std::string::npos);
}

}  // namespace
}  // namespace farandole::launch::remote
