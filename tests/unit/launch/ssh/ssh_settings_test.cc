#include "launch/ssh/ssh_settings.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "crypto/aes_instructions.h"

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

using testing::StartsWith;

constexpr char kUsual[] =
    "user root\nciphers chacha20-poly1305@openssh.com,aes128-ctr,aes192-ctr,aes256-ctr,"
    "aes128-gcm@openssh.com,aes256-gcm@openssh.com\nport 22\n";

TEST(SshCiphers, OnlyTheOrderOfTheDefaultChanges) {
  EXPECT_EQ(fasterCiphers(kUsual),
            "aes128-gcm@openssh.com,aes256-gcm@openssh.com,chacha20-poly1305@openssh.com,"
            "aes128-ctr,aes192-ctr,aes256-ctr");
}

TEST(SshCiphers, WhatSomebodyChoseIsKept) {
  EXPECT_EQ(fasterCiphers("ciphers chacha20-poly1305@openssh.com\n"), "");
  EXPECT_EQ(fasterCiphers("ciphers aes256-ctr,aes128-gcm@openssh.com"), "");
  EXPECT_EQ(fasterCiphers("user root\n"), "");
  EXPECT_EQ(fasterCiphers(""), "");
}

// The real client, with a configuration of its own.
class RealSsh : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "ciphersXXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string ciphersWith(const std::string& configuration) {
    SshOptions options;
    options.configFile = folder_ + "/config";
    std::ofstream(options.configFile) << configuration;
    SshTarget target{"alpha", "", 0};
    learnSettings({&target}, options);
    const auto words = sshArguments(target, options, "true");
    for (const auto& word : words) {
      if (word.starts_with("Ciphers=")) return word;
    }
    return "";
  }

 private:
  std::string folder_;
};

TEST_F(RealSsh, GetsTheFastOneUnlessTheConfigurationSaysOtherwise) {
  EXPECT_THAT(ciphersWith(""),
              StartsWith(crypto::hasAesInstructions() ? "Ciphers=aes128-gcm@" : ""));
  EXPECT_EQ(ciphersWith("Host alpha\n  Ciphers aes256-ctr\n"), "");
  EXPECT_EQ(ciphersWith("Host alpha\n  Ciphers -aes128-cbc,aes192-ctr\n"), "");
}

}  // namespace
}  // namespace farandole::launch::ssh
