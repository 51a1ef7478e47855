// Who a rank is, if another launcher than ours has started it.
#include "runtime/identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

namespace farandole::runtime {
namespace identity_test {

using ::testing::HasSubstr;

constexpr char kSecret[] = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

class IdentityTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/farandole-identity-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    folder_ = name;
    variables_["HOME"] = folder_;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Result<Identity> identity() {
    return identify([&](const char* name) -> const char* {
      const auto found = variables_.find(name);
      return found == variables_.end() ? nullptr : found->second.c_str();
    });
  }
  std::string refusal() {
    const auto result = identity();
    EXPECT_FALSE(result.ok());
    return result.status().message();
  }
  void torchrun() {
    variables_.insert({{"RANK", "3"},
                       {"WORLD_SIZE", "4"},
                       {"LOCAL_RANK", "1"},
                       {"LOCAL_WORLD_SIZE", "2"},
                       {"GROUP_RANK", "1"},
                       {"MASTER_ADDR", "alpha"},
                       {"MASTER_PORT", "29500"},
                       {"FARANDOLE_SECRET", kSecret}});
  }
  std::string write(const std::string& name, const std::string& text, mode_t mode) {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path) << text;
    ::chmod(path.c_str(), mode);
    return path;
  }

  std::string folder_;
  std::map<std::string, std::string> variables_;
};

TEST_F(IdentityTest, AloneWithoutAnything) {
  auto alone = identity();
  ASSERT_TRUE(alone.ok());
  EXPECT_EQ(alone->config.size, 1);
  EXPECT_FALSE(alone->store);
}

TEST_F(IdentityTest, TorchrunTellsEverything) {
  torchrun();
  auto found = identity();
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ(found->config.rank, 3);
  EXPECT_EQ(found->config.size, 4);
  EXPECT_EQ(found->config.localRank, 1);
  EXPECT_EQ(found->config.localSize, 2);
  EXPECT_EQ(found->config.machine, 1);
  ASSERT_TRUE(found->store);
  EXPECT_EQ(found->store->address, "alpha");
  // torchrun itself holds MASTER_PORT.
  EXPECT_EQ(found->store->port, 29501);
  EXPECT_GT(found->store->ports, 1);
  variables_["FARANDOLE_PORT"] = "31000";
  EXPECT_EQ(identity()->store->port, 31000);
  EXPECT_EQ(identity()->store->ports, 1);
}

TEST_F(IdentityTest, OurLauncherOutranksIt) {
  torchrun();
  variables_.insert({{"FARANDOLE_RANK", "0"},
                     {"FARANDOLE_SIZE", "2"},
                     {"FARANDOLE_AGENT", "@x"},
                     {"FARANDOLE_JOB", "j"}});
  auto found = identity();
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ(found->config.size, 2);
  EXPECT_FALSE(found->store);
}

TEST_F(IdentityTest, TwoAttemptsAreTwoJobs) {
  torchrun();
  const std::string first = identity()->config.job;
  variables_["TORCHELASTIC_RESTART_COUNT"] = "1";
  EXPECT_NE(identity()->config.job, first);
}

TEST_F(IdentityTest, APodIsOneRank) {
  variables_.insert({{"RANK", "1"},
                     {"WORLD_SIZE", "2"},
                     {"PET_NNODES", "2"},
                     {"MASTER_ADDR", "job-master-0"},
                     {"MASTER_PORT", "23456"},
                     {"FARANDOLE_SECRET", kSecret}});
  auto found = identity();
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ(found->config.rank, 1);
  EXPECT_EQ(found->config.size, 2);
  EXPECT_EQ(found->config.localSize, 1);
  EXPECT_EQ(found->config.machine, 1);
  variables_["PET_NPROC_PER_NODE"] = "4";
  EXPECT_THAT(refusal(), HasSubstr("start the program with torchrun or farandole run"));
}

TEST_F(IdentityTest, WithoutASecretOnlyOnLoopback) {
  torchrun();
  variables_.erase("FARANDOLE_SECRET");
  EXPECT_THAT(refusal(), HasSubstr("openssl rand -hex 32"));
  for (const char* address : {"127.0.0.1", "localhost", "::1"}) {
    variables_["MASTER_ADDR"] = address;
    auto found = identity();
    ASSERT_TRUE(found.ok()) << found.status().message();
    EXPECT_EQ(found->config.secret.size(), 64u);
    // It is the same for every rank of this user, and for no other user.
    EXPECT_EQ(found->config.secret, identity()->config.secret);
  }
  struct stat about {};
  ASSERT_EQ(::stat((folder_ + "/.cache/farandole/loopback-secret").c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600u);
}

TEST_F(IdentityTest, FolderOfTheSecretIsThisUsersAlone) {
  torchrun();
  variables_.erase("FARANDOLE_SECRET");
  variables_["MASTER_ADDR"] = "127.0.0.1";
  const mode_t before = ::umask(0);
  EXPECT_TRUE(identity().ok());
  ::umask(before);
  const std::string ours = folder_ + "/.cache/farandole";
  const auto mode = [](const std::string& path) {
    struct stat about {};
    EXPECT_EQ(::stat(path.c_str(), &about), 0);
    return about.st_mode & 0777;
  };
  EXPECT_EQ(mode(folder_ + "/.cache"), 0700u);
  EXPECT_EQ(mode(ours), 0700u);
  // An earlier release left it like this.
  ASSERT_EQ(::chmod(ours.c_str(), 0777), 0);
  EXPECT_TRUE(identity().ok());
  EXPECT_EQ(mode(ours), 0700u);
  variables_.erase("HOME");
  EXPECT_THAT(refusal(), HasSubstr("neither HOME nor XDG_CACHE_HOME is set"));
  EXPECT_FALSE(std::filesystem::exists("/.cache/farandole"));
}

TEST_F(IdentityTest, SecretOfAnotherUserIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make such a file";
  torchrun();
  variables_.erase("FARANDOLE_SECRET");
  const std::string path = write("secret", kSecret, 0600);
  ASSERT_EQ(::chown(path.c_str(), 12002, 12002), 0);
  variables_["FARANDOLE_SECRET_FILE"] = path;
  EXPECT_THAT(refusal(), HasSubstr("belongs to user 12002"));
  // This is the secret that ranks of one machine share.
  variables_.erase("FARANDOLE_SECRET_FILE");
  variables_["MASTER_ADDR"] = "127.0.0.1";
  const std::string ours = folder_ + "/.cache/farandole";
  ASSERT_TRUE(identity().ok());
  ASSERT_EQ(::chown((ours + "/loopback-secret").c_str(), 12002, 12002), 0);
  EXPECT_THAT(refusal(), HasSubstr("loopback-secret belongs to user 12002"));
  // A user who can write to the folder can put another file there, with the right owner.
  ASSERT_EQ(::chown((ours + "/loopback-secret").c_str(), 0, 0), 0);
  ASSERT_EQ(::chown(ours.c_str(), 12002, 12002), 0);
  EXPECT_THAT(refusal(), HasSubstr("farandole belongs to user 12002"));
}

// Ranks that meet there are on one machine: no port of theirs can be reached from others.
TEST_F(IdentityTest, RanksThatMeetOnLoopbackStayThere) {
  torchrun();
  EXPECT_EQ(identity()->config.bind, "");
  for (const auto& [address, bind] :
       {std::pair("127.0.0.1", "127.0.0.1"), std::pair("localhost", "127.0.0.1"),
        std::pair("::1", "::1"), std::pair("127.0.0.5", "127.0.0.5")}) {
    variables_["MASTER_ADDR"] = address;
    EXPECT_EQ(identity()->config.bind, bind) << address;
  }
  // A user who says where to listen gets that.
  variables_["FARANDOLE_BIND"] = "10.0.0.1";
  EXPECT_EQ(identity()->config.bind, "10.0.0.1");
}

TEST_F(IdentityTest, SecretFromAFile) {
  torchrun();
  variables_.erase("FARANDOLE_SECRET");
  variables_["FARANDOLE_SECRET_FILE"] = write("secret", std::string(kSecret) + "\n", 0600);
  EXPECT_EQ(identity()->config.secret, kSecret);
  variables_["FARANDOLE_SECRET_FILE"] = write("open", kSecret, 0644);
  EXPECT_THAT(refusal(), HasSubstr("can be read by others: chmod 600"));
  variables_["FARANDOLE_SECRET_FILE"] = write("short", "1234", 0600);
  EXPECT_THAT(refusal(), HasSubstr("at least 32 lower-case hexadecimal digits"));
  variables_["FARANDOLE_SECRET_FILE"] = folder_ + "/absent";
  EXPECT_THAT(refusal(), HasSubstr("No such file"));
}

TEST_F(IdentityTest, NonsenseIsNamed) {
  torchrun();
  variables_["RANK"] = "4";
  EXPECT_THAT(refusal(), HasSubstr("RANK=4 is not below WORLD_SIZE=4"));
  variables_["RANK"] = "first";
  EXPECT_THAT(refusal(), HasSubstr("RANK=first: expected a whole number"));
}

}  // namespace identity_test
}  // namespace farandole::runtime
