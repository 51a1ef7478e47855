#include "launch/ssh/ssh_settings.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace farandole::launch::ssh {
namespace {

TEST(SshSettings, RouteOfAName) {
  const SshRoute plain = sshRoute("user root\nhostname alpha\nport 22\n", "alpha");
  EXPECT_EQ(plain.host, "alpha");
  EXPECT_EQ(plain.port, 22);
  EXPECT_FALSE(plain.proxied);
  const SshRoute other = sshRoute("hostname 203.0.113.5\nport 12345\nproxyjump gate\n", "alpha");
  EXPECT_EQ(other.host, "203.0.113.5");
  EXPECT_EQ(other.port, 12345);
  EXPECT_TRUE(other.proxied);
  EXPECT_FALSE(sshRoute("proxycommand none\n", "alpha").proxied);
  EXPECT_EQ(sshRoute("", "alpha").host, "alpha");
}

// The real client, with a configuration of its own.
TEST(SshSettings, AnAliasIsReachedWhereTheConfigurationSays) {
  std::string folder = testing::TempDir() + "settingsXXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  SshOptions options;
  options.configFile = folder + "/config";
  std::ofstream(options.configFile) << "Host alpha\n  HostName 203.0.113.5\n";
  SshTarget alias{"alpha", "", 0};
  SshTarget address{"[fd00::11]", "", 0};
  learnSettings({&alias, &address}, options);
  EXPECT_EQ(alias.reachedAt, "203.0.113.5");
  EXPECT_EQ(address.reachedAt, "fd00::11");
  options.program = folder + "/no-such-ssh";
  SshTarget unknown{"alpha", "", 0};
  learnSettings({&unknown}, options);
  EXPECT_EQ(unknown.reachedAt, "");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace farandole::launch::ssh
