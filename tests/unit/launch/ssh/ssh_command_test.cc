#include "launch/ssh/ssh_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "process/bounded_command.h"

namespace farandole::launch::ssh {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::Not;

// The words after each -o.
std::vector<std::string> settings(const std::vector<std::string>& words) {
  std::vector<std::string> result;
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i] == "-o") result.push_back(words[i + 1]);
  }
  return result;
}

std::string valueOf(const std::vector<std::string>& words, const std::string& option) {
  const auto at = std::find(words.begin(), words.end(), option);
  return at == words.end() ? "" : *(at + 1);
}

TEST(SshCommand, NeverAsksAndEndsByItself) {
  const auto words = sshArguments({"alpha", "", 0}, {}, "true");
  EXPECT_EQ(words.front(), "ssh");
  EXPECT_THAT(words, Contains("-T"));
  EXPECT_THAT(settings(words),
              IsSupersetOf({"BatchMode=yes", "ConnectTimeout=10", "ConnectionAttempts=1",
                            "ServerAliveInterval=3", "ServerAliveCountMax=2", "ControlMaster=no",
                            "StrictHostKeyChecking=yes", "RemoteCommand=none"}));
  const std::vector<std::string> tail(words.end() - 3, words.end());
  EXPECT_THAT(tail, testing::ElementsAre("--", "alpha", "true"));
}

TEST(SshCommand, HostKeysAreCheckedAlsoWhenNewOnesAreAccepted) {
  SshOptions options;
  options.acceptNewHostKeys = true;
  const auto words = sshArguments({"alpha", "", 0}, options, "true");
  EXPECT_THAT(settings(words), Contains("StrictHostKeyChecking=accept-new"));
}

TEST(SshCommand, ThePortOfTheHostBeatsTheCommonOneAndNoneLeavesItToSshConfig) {
  SshOptions options;
  EXPECT_THAT(sshArguments({"alpha", "", 0}, options, "true"), Not(Contains("-p")));
  options.port = 2222;
  EXPECT_EQ(valueOf(sshArguments({"alpha", "", 0}, options, "true"), "-p"), "2222");
  EXPECT_EQ(valueOf(sshArguments({"alpha", "", 12345}, options, "true"), "-p"), "12345");
}

TEST(SshCommand, OnlyTheNamedKeyIsOffered) {
  SshOptions options;
  options.identityFile = "/keys/my key";
  const auto words = sshArguments({"alpha", "dev", 0}, options, "true");
  EXPECT_EQ(valueOf(words, "-i"), "/keys/my key");
  EXPECT_EQ(valueOf(words, "-l"), "dev");
  EXPECT_THAT(settings(words), Contains("IdentitiesOnly=yes"));
}

TEST(SshCommand, BracketsOfAnAddressAreForOthers) {
  const auto words = sshArguments({"[fe80::1%eth0]", "", 0}, {}, "true");
  EXPECT_EQ(words[words.size() - 2], "fe80::1%eth0");
}

TEST(SshCommand, NamesThatAShellWouldReadAreRefused) {
  EXPECT_TRUE(checkSshTarget({"node-1.example_x", "dev", 22}, {}).ok());
  EXPECT_TRUE(checkSshTarget({"[::1]", "", 0}, {}).ok());
  for (const char* host : {"", "-oProxyCommand=x", "a b", "a;b", "$(a)", "a`b`", "a\nb", "a'b"}) {
    EXPECT_FALSE(checkSshTarget({host, "", 0}, {}).ok()) << host;
  }
  EXPECT_FALSE(checkSshTarget({"alpha", "-l", 0}, {}).ok());
  EXPECT_FALSE(checkSshTarget({"alpha", "a$b", 0}, {}).ok());
  EXPECT_FALSE(checkSshTarget({"alpha", "", 65536}, {}).ok());
}

TEST(SshCommand, TheClientCanBeNamed) {
  ::setenv("FARANDOLE_SSH", "/opt/ssh", 1);
  EXPECT_EQ(sshProgram(), "/opt/ssh");
  ::setenv("FARANDOLE_SSH", "", 1);
  EXPECT_EQ(sshProgram(), "ssh");
  ::unsetenv("FARANDOLE_SSH");
  EXPECT_EQ(sshProgram(), "ssh");
}

TEST(SshCommand, ScriptsThatSomeShellWouldReadDifferentlyAreRefused) {
  for (const char* script : {"echo 'a'", "echo a!", "a\nb", "echo \\\\", "echo \\"}) {
    EXPECT_FALSE(remoteShell(script).ok()) << script;
  }
  auto command = remoteShell("test -x \"$HOME/a b\" || printf \"%s\\n\" none; exit 3");
  ASSERT_TRUE(command.ok());
  for (const char* shell : {"sh", "bash", "csh", "tcsh", "fish", "zsh"}) {
    const auto end =
        process::runBounded({shell, "-c", *command}, Deadline::after(std::chrono::seconds(5)));
    if (end.startError != 0) continue;  // not installed here
    EXPECT_EQ(end.exitCode, 3) << shell << end.err;
    EXPECT_EQ(end.out, "none\n") << shell;
  }
}

}  // namespace
}  // namespace farandole::launch::ssh
